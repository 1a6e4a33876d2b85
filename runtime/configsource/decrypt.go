package configsource

import (
	"bytes"
	"crypto/sha256"
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

const (
	// decryptedAge is how long a decrypted credential is kept. Volumes are compared with their sources more often.
	decryptedAge = time.Minute
	// failureAge is how long a failure is kept, so that many requests for a credential that cannot be decrypted start few programs.
	failureAge = 5 * time.Second
	// maxDecryptions is how many programs run at the same time. A TPM executes one command at a time.
	maxDecryptions = 4
	// queueTimeout is for the programs that started before.
	queueTimeout = 30 * time.Second
)

// Decrypted decrypts credentials, and keeps their values in memory for a short time, because a TPM is slow. A file with another content is
// decrypted at once. Calls for the same credential share one program. Its methods are safe for concurrent use. The nil value keeps nothing
// and shares nothing.
type Decrypted struct {
	decrypt func(name string, encrypted []byte) ([]byte, error)
	slots   chan struct{} // has an element for each program that runs

	mu   sync.Mutex
	kept map[credential]*decryption
}

// NewDecrypted returns a Decrypted without values.
func NewDecrypted() *Decrypted {
	return &Decrypted{decrypt: decrypt, slots: make(chan struct{}, maxDecryptions), kept: map[credential]*decryption{}}
}

// credential identifies an encrypted credential.
type credential struct {
	name      string
	encrypted [sha256.Size]byte // the hash of the content
}

// decryption is the decryption of a credential. The result is set when done is closed.
type decryption struct {
	done  chan struct{}
	value []byte
	err   error
}

// secret returns the value of a secret with an encrypted credential, whose only key is the name of the credential. It returns after
// [Timeout] for the file, queueTimeout and another Timeout.
func (d *Decrypted) secret(s *spec.Secret) (map[string][]byte, error) {
	name, file := s.CredentialName(), s.CredentialFile
	encrypted, err := WithTimeout("secret", s.Name, func() ([]byte, error) {
		encrypted, err := read(file, 0o777, maxBytes) // every user may read what is encrypted
		if err != nil {
			return nil, fmt.Errorf("secret %q: read credential: %w", s.Name, err)
		}
		return encrypted, nil
	})
	if err != nil {
		return nil, err
	}
	value, err := d.value(name, encrypted)
	if err != nil {
		return nil, fmt.Errorf("secret %q: decrypt credential %s: %w", s.Name, file, err)
	}
	return map[string][]byte{name: value}, nil
}

// value returns the value of an encrypted credential with this name.
func (d *Decrypted) value(name string, encrypted []byte) ([]byte, error) {
	if d == nil {
		return answer(func() ([]byte, error) { return decrypt(name, encrypted) })
	}
	running := d.start(name, encrypted)
	<-running.done
	return running.value, running.err
}

// start returns the decryption of a credential that is kept or in progress, or starts one.
func (d *Decrypted) start(name string, encrypted []byte) *decryption {
	id := credential{name, sha256.Sum256(encrypted)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.kept[id]; known != nil {
		return known
	}
	started := &decryption{done: make(chan struct{})}
	d.kept[id] = started
	go func() { // also for the calls that come later
		started.value, started.err = d.inTurn(name, encrypted)
		close(started.done)
		age := decryptedAge
		if started.err != nil {
			age = failureAge
		}
		timer := time.NewTimer(age)
		<-timer.C
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.kept, id)
	}()
	return started
}

// inTurn decrypts a credential when fewer than maxDecryptions programs run. A program that is stuck in the kernel keeps its slot.
func (d *Decrypted) inTurn(name string, encrypted []byte) ([]byte, error) {
	timeout := time.NewTimer(queueTimeout)
	defer timeout.Stop()
	select {
	case d.slots <- struct{}{}:
	case <-timeout.C:
		return nil, fmt.Errorf("other programs %s run for %v", creds, queueTimeout)
	}
	return answer(func() ([]byte, error) {
		defer func() { <-d.slots }()
		return d.decrypt(name, encrypted)
	})
}

// answer returns the result of a decryption, or an error after [Timeout]: the program cannot be killed while it is stuck in the kernel.
func answer(decrypt func() ([]byte, error)) ([]byte, error) {
	timeout := time.NewTimer(Timeout)
	defer timeout.Stop()
	value, answered, err := await(timeout.C, decrypt)
	if !answered {
		return nil, fmt.Errorf("%s does not answer within %v, and cannot be killed", creds, Timeout)
	}
	return value, err
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
	notify := func(variable string) bool { return strings.HasPrefix(variable, "NOTIFY_SOCKET=") } // to which it writes its failures
	cmd.Env = append(slices.DeleteFunc(os.Environ(), notify),
		"LC_ALL=C", "SYSTEMD_LOG_LEVEL=info", "SYSTEMD_LOG_COLOR=0", "SYSTEMD_LOG_TARGET=console")
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

// causes are why a credential that is no damaged file cannot be decrypted, by parts of the messages of systemd-creds. The first one counts.
var causes = []struct{ part, cause string }{
	{"TPM2 support is not installed", "it was encrypted with a TPM, and the libraries for the TPM are not installed on this host"},
	{"policy digest", firmwareChanged},
	{"policy check failed", firmwareChanged},
	// The key does not fit, the host has none, or has no TPM or another one.
	{"Decryption failed", foreign},
	{"credential key", foreign},
	{"host key", foreign},
	{"integrity check failed", foreign}, // of the TPM, whose key does not fit
	{"TCTI context", foreign},           // the connection to the TPM
	{"TPM2", foreign},
}

const (
	foreign         = "it was not encrypted for this host, or is damaged"
	firmwareChanged = "the firmware or Secure Boot of this host has changed since it was encrypted"
)

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
	for _, c := range causes {
		if strings.Contains(message, c.part) {
			return fmt.Errorf("%s (%w)", c.cause, failed)
		}
	}
	return failed
}
