package configsource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	dir := fakeCreds(t, `echo "$@" >> calls; tr a-z A-Z`)
	pod, file := sealed(t, "hunter")
	source := Source{Decrypted: &Decrypted{}}
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
	if want := strings.Repeat("--name=password --newline=no decrypt - -\n", 2); err != nil || string(calls) != want {
		t.Errorf("calls %q, %v, want %q", calls, err, want)
	}
	pod.Secrets[0].Credential = "" // the name is that of the file
	if got, err := (Source{}).Secret(pod, "db"); err != nil || string(got["db.cred"]) != "OTHER" {
		t.Errorf("without a name: %q, %v", got, err)
	}
}

func TestDecryptFails(t *testing.T) {
	const foreignHost = "it was not encrypted for this host, or is damaged (systemd-creds: "
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
		{"no TPM", `echo "TPM2 support not available" >&2; exit 1`, foreignHost + "TPM2 support"},
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
