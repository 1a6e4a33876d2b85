package configsource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/spec"
)

// fakeCreds installs a program in place of systemd-creds, and returns a directory for its files.
func fakeCreds(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, creds), []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return dir
}

// sealed returns a pod with a secret in an encrypted credential, and its file.
func sealed(t *testing.T, text string) (*spec.Pod, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "db.cred")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return &spec.Pod{Secrets: []spec.Secret{{Name: "db", Credential: "password", CredentialFile: file}}}, file
}

// TestDecrypt: the value of a credential is that of systemd-creds. It is decrypted again if the file has another content.
func TestDecrypt(t *testing.T) {
	dir := fakeCreds(t, `echo "$@" "${NOTIFY_SOCKET-}" >> calls; tr a-z A-Z`)
	t.Setenv("NOTIFY_SOCKET", "/run/daemon")
	pod, file := sealed(t, "hunter")
	source := Source{Decrypted: NewDecrypted()}
	for i, test := range []struct{ content, want string }{{"hunter", "HUNTER"}, {"hunter", "HUNTER"}, {"other", "OTHER"}} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := source.Secret(pod, "db")
		if err != nil || len(got) != 1 || string(got["password"]) != test.want {
			t.Errorf("call %d: %q, %v", i, got, err)
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if want := strings.Repeat("--name=password --newline=no decrypt - - \n", 2); err != nil || string(calls) != want {
		t.Errorf("calls %q, %v, want %q", calls, err, want)
	}
	pod.Secrets[0].Credential = "" // the name is that of the file
	if got, err := (Source{}).Secret(pod, "db"); err != nil || string(got["db.cred"]) != "OTHER" {
		t.Errorf("without a name: %q, %v", got, err)
	}
}

// TestDecryptionsAreShared: calls for the same credential wait for one decryption. Its value is kept for a while, and then removed from
// memory without another call.
func TestDecryptionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		decryptions := 0
		d := NewDecrypted()
		d.decrypt = func(name string, _ []byte) ([]byte, error) {
			d.mu.Lock()
			decryptions++
			d.mu.Unlock()
			time.Sleep(time.Second)
			if name == "bad" {
				return nil, failed
			}
			return []byte("value"), nil
		}
		results := func() int {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.kept)
		}
		for _, test := range []struct {
			name string
			want error
			age  time.Duration
		}{{"password", nil, decryptedAge}, {"bad", failed, failureAge}} {
			decryptions = 0
			var calls sync.WaitGroup
			call := func() {
				value, err := d.value(test.name, []byte("sealed"))
				if !errors.Is(err, test.want) || err == nil && string(value) != "value" {
					t.Errorf("%s: %q, %v", test.name, value, err)
				}
			}
			for range 10 {
				calls.Go(call)
			}
			calls.Wait()
			time.Sleep(test.age - time.Millisecond)
			call()
			if n := results(); decryptions != 1 || n != 1 {
				t.Errorf("%s: %d decryptions, %d results in memory", test.name, decryptions, n)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if results() != 0 {
				t.Errorf("%s: the result is in memory after %v", test.name, test.age)
			}
			call()
			if decryptions != 2 {
				t.Errorf("%s: %d decryptions, want a second one after %v", test.name, decryptions, test.age)
			}
			time.Sleep(test.age)
			synctest.Wait()
		}
	})
}

// TestDecryptionsWaitInTurn: a bounded number of programs runs, and waiting for them takes nothing of the timeout of one. A program that
// cannot be killed keeps its slot, and blocks no caller forever.
func TestDecryptionsWaitInTurn(t *testing.T) {
	decryptAll := func(d *Decrypted, number int) (errs []error) {
		var mu sync.Mutex
		var calls sync.WaitGroup
		for i := range number {
			calls.Go(func() {
				_, err := d.value("password", []byte{byte(i)})
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
		synctest.Wait()
		if len(d.slots) != maxDecryptions {
			t.Errorf("%d programs run, want %d", len(d.slots), maxDecryptions)
		}
		calls.Wait()
		return errs
	}
	synctest.Test(t, func(t *testing.T) {
		d := NewDecrypted()
		d.decrypt = func(string, []byte) ([]byte, error) {
			time.Sleep(decryptTimeout)
			return nil, nil
		}
		start := time.Now()
		if err := errors.Join(decryptAll(d, 3*maxDecryptions)...); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 3*decryptTimeout {
			t.Errorf("three rounds took %v", took)
		}
		time.Sleep(decryptedAge)
	})
	synctest.Test(t, func(t *testing.T) {
		d := NewDecrypted()
		stuck := make(chan struct{})
		d.decrypt = func(string, []byte) ([]byte, error) {
			<-stuck
			return nil, nil
		}
		errs := decryptAll(d, maxDecryptions+1)
		for i, err := range errs {
			want := "systemd-creds does not answer within 10s, and cannot be killed"
			if i == maxDecryptions { // it was in the queue, and returns last
				want = "other programs systemd-creds run for 30s"
			}
			if err == nil || err.Error() != want {
				t.Errorf("call %d: %v, want %s", i, err, want)
			}
		}
		if len(d.slots) != maxDecryptions {
			t.Errorf("%d slots are used by %d programs", len(d.slots), maxDecryptions)
		}
		close(stuck)
		synctest.Wait()
		if len(d.slots) != 0 {
			t.Errorf("%d slots are used after all programs exited", len(d.slots))
		}
		time.Sleep(failureAge)
	})
}

func TestDecryptFails(t *testing.T) {
	const (
		foreignHost = "it was not encrypted for this host, or is damaged (systemd-creds: "
		tss         = `echo "ERROR:esys:src/tss2-esys/api/Esys_Load.c:112:Esys_Load() Esys Finish ErrorCode (0x000001df)" >&2;`
	)
	for _, test := range []struct{ name, script, want string }{
		{
			"other key", `echo "Credential secret file is not located on encrypted media" >&2
			echo "Decryption failed (incorrect key?): error:00000000:lib(0)::reason(0)" >&2; exit 1`,
			foreignHost + "Decryption failed (incorrect key?))",
		},
		{
			"no key", `echo "Failed to determine local credential key: No such file or directory" >&2; exit 1`,
			foreignHost + "Failed to determine local credential key: No such file or directory)",
		},
		{"no support of TPMs", `echo "TPM2 support not available" >&2; exit 1`, foreignHost + "TPM2 support"},
		{
			"no libraries", `echo "TPM2 support is not installed." >&2; exit 1`,
			"it was encrypted with a TPM, and the libraries for the TPM are not installed on this host (systemd-creds: TPM2 support is " +
				"not ",
		},
		{
			"no TPM", `echo "Failed to initialize TCTI context: tcti:IO failure" >&2; exit 1`,
			foreignHost + "Failed to initialize TCTI context: tcti:IO failure)",
		},
		{
			"other TPM", tss + `echo "Failed to load HMAC key in TPM: tpm:parameter(1):integrity check failed" >&2; exit 1`,
			foreignHost + "Failed to load HMAC key in TPM: tpm:parameter(1):integrity check failed)",
		},
		{
			"other PCR",
			`echo "Current policy digest does not match stored policy digest, cancelling TPM2 authentication attempt." >&2; exit 1`,
			"the firmware or Secure Boot of this host has changed since it was encrypted (systemd-creds: Current policy digest does not ",
		},
		{
			"other PCR, when unsealed", tss + `echo "Failed to unseal data: tpm:session(1):a policy check failed" >&2; exit 1`,
			"the firmware or Secure Boot of this host has changed since it was encrypted (systemd-creds: Failed to unseal data: ",
		},
		{
			"other name", `echo "Embedded credential name 'x' does not match filename 'password', refusing." >&2; exit 1`,
			"db.cred: systemd-creds: Embedded credential name 'x' does not match filename 'password', refusing.",
		},
		{"nothing said", `exit 3`, "systemd-creds: exit status 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeCreds(t, test.script)
			pod, _ := sealed(t, "sealed")
			_, err := Source{}.Secret(pod, "db")
			want := test.want
			if os.Geteuid() != 0 {
				want = "systemd-creds: "
			}
			if err == nil || !strings.HasPrefix(err.Error(), `secret "db": decrypt credential /`) || !strings.Contains(err.Error(), want) ||
				errors.Is(err, fs.ErrPermission) == (os.Geteuid() == 0) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	pod, file := sealed(t, "sealed")
	fakeCreds(t, "exec sleep 1000")
	timeout := decryptTimeout
	decryptTimeout = 100 * time.Millisecond
	_, err := Source{}.Secret(pod, "db")
	if decryptTimeout = timeout; err == nil || !strings.HasSuffix(err.Error(), ": systemd-creds does not answer within 100ms") {
		t.Errorf("a program that does not answer: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	_, err = Source{}.Secret(pod, "db")
	want := `secret "db": decrypt credential ` + file + `: systemd-creds is not installed on this host`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("an optional secret would be ignored")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := (Source{}).Secret(pod, "db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
