package configsource

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/spec"
)

// creds is the program that decrypts credentials. It knows the key and the TPM of the host, and their formats.
const creds = "systemd-creds"

// decryptTimeout is for one credential. A TPM takes about a second. It is shorter than [Timeout], so that the program is killed. Tests
// shorten it.
var decryptTimeout = 8 * time.Second

// decryptedAge is how long a decrypted credential is kept. Volumes are compared with their sources more often.
const decryptedAge = time.Minute

// Decrypted decrypts credentials, and keeps their values in memory for a short time, because a TPM is slow. A file with another content is
// decrypted at once. Its methods are safe for concurrent use. The nil value keeps nothing.
type Decrypted struct {
	mu     sync.Mutex
	values []decrypted
}

// decrypted is the value of an encrypted credential.
type decrypted struct {
	name             string
	encrypted, value []byte
	until            time.Time
}

// secret returns the value of a secret with an encrypted credential, whose only key is the name of the credential.
func (d *Decrypted) secret(s *spec.Secret) (map[string][]byte, error) {
	name, file := s.CredentialName(), s.CredentialFile
	encrypted, err := read(file, 0o777, maxBytes) // every user may read what is encrypted
	if err != nil {
		return nil, fmt.Errorf("secret %q: read credential: %w", s.Name, err)
	}
	if value := d.find(name, encrypted); value != nil {
		return map[string][]byte{name: value}, nil
	}
	value, err := decrypt(name, encrypted)
	if err != nil {
		return nil, fmt.Errorf("secret %q: decrypt credential %s: %w", s.Name, file, err)
	}
	d.keep(name, encrypted, value)
	return map[string][]byte{name: value}, nil
}

// find returns a kept value, or nil.
func (d *Decrypted) find(name string, encrypted []byte) []byte {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.values = slices.DeleteFunc(d.values, func(v decrypted) bool { return !now.Before(v.until) })
	for _, v := range d.values {
		if v.name == name && bytes.Equal(v.encrypted, encrypted) {
			return v.value
		}
	}
	return nil
}

func (d *Decrypted) keep(name string, encrypted, value []byte) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.values = append(d.values, decrypted{name, encrypted, value, time.Now().Add(decryptedAge)})
}

// decrypt returns the value of an encrypted credential with this name. The value only passes through pipes.
func decrypt(name string, encrypted []byte) ([]byte, error) {
	program, err := exec.LookPath(creds)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed on this host", creds)
	}
	var value, messages bytes.Buffer
	cmd := exec.Command(program, "--name="+name, "--newline=no", "decrypt", "-", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(encrypted), &value, &messages
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SYSTEMD_LOG_LEVEL=info", "SYSTEMD_LOG_COLOR=0", "SYSTEMD_LOG_TARGET=console")
	cmd.WaitDelay = time.Second // the pipes of a child that it leaves
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	late := make(chan bool, 1)
	go func() {
		timeout := time.NewTimer(decryptTimeout)
		defer timeout.Stop()
		select {
		case <-timeout.C:
			late <- cmd.Process.Kill() == nil
		case <-exited:
			late <- false
		}
	}()
	err = cmd.Wait()
	close(exited)
	switch isLate := <-late; {
	case isLate:
		return nil, fmt.Errorf("%s does not answer within %v", creds, decryptTimeout)
	case err == nil:
		return value.Bytes(), nil
	}
	return nil, failure(messages.String(), err)
}

// foreign are parts of the messages of systemd-creds about a credential that has another key than this host: the key does not fit, the host
// has none, or has no TPM or another one.
var foreign = []string{"Decryption failed", "credential key", "host key", "TPM2"}

// failure returns the error for the messages of systemd-creds. They have names, but no value.
func failure(messages string, err error) error {
	lines := strings.Split(strings.TrimSpace(messages), "\n")
	message := strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "?")
	message, _, _ = strings.Cut(message, ": error:0") // of OpenSSL
	if message == "" {
		message = err.Error()
	}
	failed := fmt.Errorf("%s: %s", creds, message)
	if os.Geteuid() != 0 {
		return errors.Join(fs.ErrPermission, failed) // only root can read the key of the host
	}
	if slices.ContainsFunc(foreign, func(part string) bool { return strings.Contains(message, part) }) {
		return fmt.Errorf("it was not encrypted for this host, or is damaged (%w)", failed)
	}
	return failed
}
