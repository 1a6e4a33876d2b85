//go:build e2e

package runtime_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sealedFile = `
secrets.db = { credential = "password", credentialFile = "db.cred" }
volumes.keys.secret.secretName = "db"

[[containers]]
name = "reads"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "test -n \"$PASSWORD\" && echo ready; exec sleep 100000"]
env.PASSWORD.secretKeyRef = { name = "db", key = "password" }
volumeMounts.keys = "/keys"

[[containers]]
name = "later"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo \"$PASSWORD\" | tr a-z0-9 A-Z5"]
env.PASSWORD.secretKeyRef = { name = "db", key = "password" }
`

// seal encrypts a credential as a person does, with a key of the test in place of that of the host.
func (m *testHost) seal(name, value, file string) {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), "systemd-creds", "encrypt", "--with-key=host", "--name="+name, "-", filepath.Join(m.dir, file))
	cmd.Stdin = strings.NewReader(value)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.Fatalf("%v: %s", err, out)
	}
}

// TestFieldsCredentialFile tests a secret in a credential that is encrypted for the host: it is decrypted when the pod starts and never on
// a disk, a new one is used without a restart, and that of another host is an error.
//
// fields: secrets[].{name,credential,credentialFile}
func TestFieldsCredentialFile(t *testing.T) {
	key := filepath.Join(t.TempDir(), "credential.secret")
	t.Setenv("SYSTEMD_CREDENTIAL_SECRET", key)
	m := newTestHost(t)
	m.seal("password", "Oz7-sealed-1", "db.cred")
	p := newPod(m, m.parse(sealedFile))
	reads := p.serve("reads")
	inContainer := func(script string) string {
		t.Helper()
		_, out, err := p.exec(reads, time.Minute, script)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := inContainer("cat /keys/password; stat -f -c %T /keys/password"); got != "Oz7-sealed-1tmpfs\n" {
		t.Errorf("file: %q", got)
	}
	secrets := []string{"Oz7-sealed-1", "Oz7-sealed-2"}
	m.searchFiles(secrets, "run") // a tmpfs on hosts: volumes, and the files of the OCI runtime, which have the variables

	m.seal("password", "Oz7-sealed-2", "db.cred")
	m.eventually("the new value in the volume", func() (string, bool) {
		got := inContainer("cat /keys/password")
		return got, got == "Oz7-sealed-2"
	})
	later, err := p.begin("later")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.outputOf(later); got != "OZ5-SEALED-5\n" {
		t.Errorf("variable of a container that starts later: %q", got)
	}

	readable := func() string {
		if err := m.Readable(m.ctx(), p.Pod); err != nil {
			return err.Error()
		}
		return ""
	}
	m.seal("other", "Oz7-sealed-3", "db.cred")
	if got := readable(); !strings.Contains(got, "Embedded credential name 'other' does not match filename 'password'") {
		t.Errorf("a credential with another name: %q", got)
	}
	t.Setenv("SYSTEMD_CREDENTIAL_SECRET", filepath.Join(t.TempDir(), "credential.secret"))
	m.seal("password", "Oz7-sealed-4", "db.cred")
	if got := readable(); got != "" {
		t.Errorf("on the host that it was encrypted on: %q", got)
	}
	m.seal("password", "Oz7-sealed-5", "db.cred")
	t.Setenv("SYSTEMD_CREDENTIAL_SECRET", key)
	const foreign = "it was not encrypted for this host, or is damaged (systemd-creds: Decryption failed (incorrect key?))"
	if got := readable(); !strings.Contains(got, foreign) || !strings.Contains(got, filepath.Join(m.dir, "db.cred")) {
		t.Errorf("a credential of another host: %q", got)
	}
	if got := inContainer("cat /keys/password"); got != "Oz7-sealed-2" {
		t.Errorf("the volume lost its value: %q", got)
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	m.searchFiles(secrets)
}
