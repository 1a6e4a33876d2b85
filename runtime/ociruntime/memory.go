package ociruntime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// memory is a file with the last choice of [Auto], see [Choice.lasting].
type memory struct {
	Host   string `json:"host"` // see [Options.fingerprint]
	Choice Choice `json:"choice"`
}

// lasting reports whether a choice holds until the fingerprint of the host changes: crun worked, or does not support the cgroups of the
// host. Another failure may have had a cause that is gone.
func (c Choice) lasting() bool {
	return c.Program == crun || c.Program == runc && strings.Contains(c.Reason, "hybrid mode")
}

// recall returns the kept choice, unless something has changed that it depends on.
func (o Options) recall() (Choice, bool) {
	if o.Memory == "" {
		return Choice{}, false
	}
	text, err := os.ReadFile(o.Memory)
	if err != nil {
		return Choice{}, false
	}
	var m memory
	if json.Unmarshal(text, &m) != nil || !m.Choice.lasting() || m.Host != o.fingerprint() {
		return Choice{}, false
	}
	return m.Choice, true
}

// keep keeps a choice for later daemons.
func (o Options) keep(c Choice) error {
	if o.Memory == "" || !c.lasting() {
		return nil
	}
	text, err := json.Marshal(memory{Host: o.fingerprint(), Choice: c})
	if err == nil {
		err = os.WriteFile(o.Memory, text, 0o600) // a file that is written in part is not read
	}
	if err != nil {
		return fmt.Errorf("keep result of trial: %w", err)
	}
	return nil
}

// fingerprint changes when another boot, program or cgroup hierarchy may change the result of a trial.
func (o Options) fingerprint() string {
	var b strings.Builder
	boot, err := proc.BootID()
	fmt.Fprintln(&b, boot, err, o.Cgroups.Systemd(), o.Cgroups.Parent(), o.Host.UnifiedCgroups)
	for _, program := range []string{crun, runc, o.Pause} {
		path, err := exec.LookPath(program)
		fmt.Fprintln(&b, path, err != nil, stamp(path))
	}
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		fmt.Fprintln(&b, stamp(dir), string(controllers), err)
		if err != nil { // the hierarchies of v1, not the cgroups of others
			entries, err := os.ReadDir(dir)
			fmt.Fprintln(&b, entries, err)
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

// stamp returns what changes when a file is replaced or written, or another file system is mounted on it.
func stamp(path string) string {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err.Error()
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Sprint(st.Dev, st.Ino)
	}
	return fmt.Sprint(st.Dev, st.Ino, st.Size, st.Ctim)
}
