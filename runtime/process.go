package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/spec"
)

// hidden stands for a secret's value in what the engine keeps on disk.
const hidden = "[hidden]"

// remembered gives each config map and secret as it was when it was first asked for, so that one start sees one state of them,
// and knows the values of the secrets that were given.
type remembered struct {
	from    oci.Values
	kept    map[string]map[string][]byte
	secrets []string
}

func (m *remembered) ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error) {
	return m.get("c/"+name, func() (map[string][]byte, error) { return m.from.ConfigMap(pod, name) })
}

func (m *remembered) Secret(pod *spec.Pod, name string) (map[string][]byte, error) {
	return m.get("s/"+name, func() (map[string][]byte, error) {
		values, err := m.from.Secret(pod, name)
		for _, value := range values {
			m.secrets = append(m.secrets, string(value))
		}
		return values, err
	})
}

func (m *remembered) get(key string, find func() (map[string][]byte, error)) (map[string][]byte, error) {
	if values, known := m.kept[key]; known {
		return values, nil
	}
	values, err := find()
	if err != nil {
		return nil, err
	}
	if m.kept == nil {
		m.kept = map[string]map[string][]byte{}
	}
	m.kept[key] = values
	return values, nil
}

// hiding gives secrets whose every value is hidden.
type hiding struct{ *remembered }

func (h hiding) Secret(pod *spec.Pod, name string) (map[string][]byte, error) {
	values, err := h.remembered.Secret(pod, name)
	masked := make(map[string][]byte, len(values))
	for key := range values {
		masked[key] = []byte(hidden)
	}
	return masked, err
}

// shortestSecret is the length of the shortest value that is looked for anywhere in an error. A shorter one would be found where
// it is not, and is looked for only in quotes, as a program is named that is not there.
const shortestSecret = 4

// conceal takes the values of secrets out of an error: a program that is not there is named in it, and so may be its
// argument.
func (m *remembered) conceal(err error) error {
	if err == nil || len(m.secrets) == 0 {
		return err
	}
	text := err.Error()
	longest := slices.SortedFunc(slices.Values(m.secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longest {
		if secret == "" {
			continue
		}
		quoted := strconv.Quote(secret)
		text = strings.ReplaceAll(text, quoted, strconv.Quote(hidden))
		if len(secret) >= shortestSecret {
			text = strings.ReplaceAll(text, secret, hidden)
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], hidden)
		}
	}
	if text == err.Error() {
		return err
	}
	return concealed{text, err}
}

// conceal takes the values of the secrets that a container's variables are made of out of an error.
func (r *Runtime) conceal(pod *spec.Pod, container string, err error) error {
	c, findErr := find(pod, container)
	if findErr != nil {
		return err
	}
	values := &remembered{from: r.config}
	unread := false
	look := func(name string) {
		_, err := values.Secret(pod, name)
		unread = unread || err != nil && !errors.Is(err, fs.ErrNotExist) // what is not there, the error does not tell
	}
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].SecretRef; ref != nil {
			look(ref.Name)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.SecretKeyRef != nil {
			look(from.SecretKeyRef.Name)
		}
	}
	if unread && err != nil {
		return concealed{"the error may tell a secret, which cannot be read now to take it out", err}
	}
	return values.conceal(err)
}

// concealed is an error whose text tells no secret; its kind is that of the error it stands for.
type concealed struct {
	text string
	err  error
}

func (c concealed) Error() string { return c.text }

// Is compares kinds and never gives the error itself away.
func (c concealed) Is(target error) bool { return errors.Is(c.err, target) }

// processFile is where the arguments and the environment of a run lie that hold secrets, from its creation until the shim
// has taken them. It is in the run-time folder and for root alone, in a folder of its pod's: a daemon that is killed before it
// has made the run's record leaves a file that only the pod's removal finds.
func (r *Runtime) processFile(uid, id string) string {
	return filepath.Join(r.opts.RunDir, "process", uid, id)
}

// keepProcess gives the shim what the engine must not keep, and returns the annotation that says where it is.
func (r *Runtime) keepProcess(uid, id string, p shim.Process) (map[string]string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	path := r.processFile(uid, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("keep environment: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("keep environment: %w", err)
	}
	return map[string]string{shim.ProcessAnnotation: path}, nil
}

// environmentOf is the environment that a container runs with: what the engine keeps of it, or, where that hides secrets, what
// the shim has put into the bundle.
func (r *Runtime) environmentOf(id string, s *specs.Spec) ([]string, error) {
	if s.Annotations[shim.ProcessAnnotation] == "" {
		return s.Process.Env, nil
	}
	text, err := os.ReadFile(filepath.Join(r.opts.RunDir, "engine", "io.containerd.runtime.v2.task", engine.Namespace, id, "config.json"))
	if err != nil {
		return nil, fmt.Errorf("find environment: %w", err)
	}
	var whole specs.Spec
	if err := json.Unmarshal(text, &whole); err != nil || whole.Process == nil {
		return nil, fmt.Errorf("find environment: the bundle's specification cannot be read: %w", err)
	}
	return whole.Process.Env, nil
}

// dropProcess takes away what [Runtime.keepProcess] kept.
func (r *Runtime) dropProcess(uid, id string) error {
	if err := os.Remove(r.processFile(uid, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop environment: %w", err)
	}
	return nil
}

// recursiveReadOnly reports whether the kernel (5.12) and the OCI runtime can make a tree of mounts read-only.
func recursiveReadOnly(ctx context.Context, runtime string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		return false
	}
	text, err := exec.CommandContext(ctx, runtime, "features").Output() //nolint:gosec // it runs every container
	var features struct {
		MountOptions []string `json:"mountOptions"`
	}
	return err == nil && json.Unmarshal(text, &features) == nil && slices.Contains(features.MountOptions, "rro")
}
