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

// Limits of the process that reads a project.
const (
	maxCPUSeconds  = 20
	maxDataBytes   = 1 << 30
	maxOpenFiles   = 128
	maxResultBytes = 64 << 20
	maxDuration    = time.Minute
)

// Command is the name of the hidden command that runs [Serve].
const Command = "convert-compose"

// Isolated is [Convert] in a child process with limits of time and memory. With Landlock (Linux 5.13), the child reads only files below
// the directories of the request and the files that it names, and opens no connections. Without it, only the checks of this package hold:
// the library reads include and extends wherever they lead. Either way, the child has the rights of the user.
func Isolated(ctx context.Context, q *Request) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, maxDuration)
	defer cancel()
	input, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	var stdout, stderr limited
	stdout.left, stderr.left = maxResultBytes, 4<<10
	cmd := exec.CommandContext(ctx, "/proc/self/exe", Command)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{"GOMEMLIMIT=512MiB", "GOTRACEBACK=none", "HOME=" + os.Getenv("HOME")} // paths may begin with ~
	cmd.Dir = q.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := startConfined(cmd, slices.Concat(program, []string{q.Dir}, q.AllowedDirs, q.Files, q.EnvFiles)); err != nil {
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
		return nil, fmt.Errorf("convert %s: it takes more than %d s or %d MiB: %w", q.Names[0], maxCPUSeconds, maxDataBytes>>20, err)
	case err != nil:
		return nil, fmt.Errorf("convert %s: %s", q.Names[0], oneLine(string(stderr.data)))
	}
	if err := json.Unmarshal(stdout.data, &r); err != nil {
		return nil, fmt.Errorf("convert %s: read the result of the converter: %w", q.Names[0], err)
	}
	return &r, nil
}

// program are the files of this program: itself and, if it is linked dynamically, its libraries.
var program = []string{"/proc/self/exe", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"}

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

// Serve is the child of [Isolated]: it limits itself, converts the request on in, and writes the result to out.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	for _, l := range []struct {
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_CPU, maxCPUSeconds}, {unix.RLIMIT_DATA, maxDataBytes}, {unix.RLIMIT_NOFILE, maxOpenFiles}, {unix.RLIMIT_CORE, 0},
	} {
		var current unix.Rlimit
		if err := unix.Getrlimit(l.resource, &current); err != nil {
			return fmt.Errorf("read the limits of the converter: %w", err)
		}
		limit := min(l.limit, current.Max) // which only root can raise
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit the converter: %w", err)
		}
	}
	var q Request
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if len(q.Files) == 0 || len(q.Names) != len(q.Files) {
		return errors.New("read the request: no files")
	}
	ctx, cancel := context.WithTimeout(ctx, maxDuration) // also if the parent was killed
	defer cancel()
	done := make(chan *Result, 1)
	go func() { done <- Convert(ctx, &q) }() // reading a pipe blocks, and cannot be canceled
	select {
	case r := <-done:
		return json.NewEncoder(out).Encode(r)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
