package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Program is the name of the program that converts projects. podstead does not link the library of Compose, whose initialization takes
// longer than all others together.
const Program = "podstead-compose"

const (
	// MaxDuration is how long a conversion may take.
	MaxDuration    = time.Minute
	maxResultBytes = 64 << 20
)

// Limits of the process of [Program], which it sets itself.
const (
	MaxCPUSeconds = 20
	MaxDataBytes  = 1 << 30
	MaxOpenFiles  = 128
)

// Convert converts a project with the program at an absolute path, in a process with limits of time and memory. With Landlock (Linux 5.13),
// it reads only files below the directories of the request and the files that it names, and opens no connections. Without it, only the
// checks of package converter hold: the library reads include and extends wherever they lead. Either way, it has the rights of the user.
func Convert(ctx context.Context, program string, q *Request) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, MaxDuration)
	defer cancel()
	input, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	var stdout, stderr limited
	stdout.left, stderr.left = maxResultBytes, 4<<10
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = []string{"GOMEMLIMIT=512MiB", "GOTRACEBACK=none", "HOME=" + os.Getenv("HOME")} // paths may begin with ~
	cmd.Dir = q.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := startConfined(cmd, slices.Concat(libraries, []string{program, q.Dir}, q.AllowedDirs, q.Files, q.EnvFiles)); err != nil {
		return nil, fmt.Errorf("start the converter: %w", err)
	}
	err = cmd.Wait()
	var r Result
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("convert %s: %w", q.Names[0], context.Cause(ctx))
	case stdout.left < 0:
		return nil, fmt.Errorf("convert %s: the pods are larger than %d bytes", q.Names[0], maxResultBytes)
	case err != nil && (cmd.ProcessState.ExitCode() < 0 || bytes.Contains(stderr.data, []byte("out of memory"))): // killed by a signal
		return nil, fmt.Errorf("convert %s: it takes more than %d s or %d MiB: %w", q.Names[0], MaxCPUSeconds, MaxDataBytes>>20, err)
	case cmd.ProcessState.ExitCode() == StatusVersion:
		return nil, fmt.Errorf("convert %s: %w", q.Names[0], versionError(OneLine(string(stderr.data))))
	case err != nil:
		return nil, fmt.Errorf("convert %s: %s", q.Names[0], OneLine(string(stderr.data)))
	}
	if err := json.Unmarshal(stdout.data, &r); err != nil {
		return nil, fmt.Errorf("convert %s: read the result of the converter: %w", q.Names[0], err)
	}
	return &r, nil
}

// StatusVersion is the exit code of [Program] for a request of another version.
const StatusVersion = 3

// ErrVersion is the error of [Convert] if podstead and [Program] are not of the same version.
var ErrVersion = errors.New("podstead and " + Program + " are not of the same version")

// versionError is an [ErrVersion] with the text of the program, which names the versions.
type versionError string

func (e versionError) Error() string        { return string(e) }
func (e versionError) Is(target error) bool { return target == ErrVersion }

// libraries are the files that the program needs if it is linked dynamically.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"}

// limited keeps what is written, up to a limit.
type limited struct {
	data []byte
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, io.ErrShortWrite
	}
	l.data = append(l.data, p...)
	return len(p), nil
}

// startConfined starts a program that reads only files below paths. Landlock restricts a thread and what it starts, so the thread ends
// with the goroutine: it is not unlocked.
func startConfined(cmd *exec.Cmd, paths []string) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := confine(paths); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			done <- err
			return
		}
		done <- cmd.Start()
	}()
	return <-done
}

// confine restricts this thread to reading files below paths. The error is [errors.ErrUnsupported] if the kernel has no Landlock.
func confine(paths []string) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return errors.ErrUnsupported
	}
	const read = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rules := unix.LandlockRulesetAttr{
		Handled_access_fs: read | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
			unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
			unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
			unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
			unix.LANDLOCK_ACCESS_FS_MAKE_SYM,
	}
	size := unsafe.Sizeof(rules.Handled_access_fs)
	if version >= 4 { // Linux 6.7
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(rules.Handled_access_net)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return fmt.Errorf("create the rules of Landlock: %w", errno)
	}
	defer unix.Close(int(ruleset))
	for _, path := range paths {
		if err := allow(int(ruleset), path, read); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("enforce the rules of Landlock: %w", errno)
	}
	return nil
}

// allow adds a rule for a file or what is below a directory. A path that is missing has no rule: reading it reports the error.
func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(
		unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow to read %s: %w", path, errno)
	}
	return nil
}
