package crilog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childDir is the environment variable that makes the test binary write the logs of the containers in a directory, until it is killed.
const childDir = "PODSTEAD_TEST_FEED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := writeLogs(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fedContainer is a container of the test. Its FIFOs, spools and record are in a directory of its name.
type fedContainer struct {
	Name string
	Path string // of its log
	Log  Options

	// line returns the next output.
	line func(r *rand.Rand, i int) []byte
	// follow is set if a follower reads all files before they are removed, or moved more often than it looks.
	follow bool
	// chunk is the maximum size of its writes, size that of its output of a stream, in bytes.
	chunk, size int
}

// childFeed is a feed in the process that is killed.
type childFeed struct {
	*Feed
	fifos  [2]int
	full   bool
	active atomic.Bool // a goroutine flushes
	failed atomic.Pointer[error]
}

// writeLogs is the process that is killed. It creates the file done in the directory when all logs are complete, after the file stop was
// created.
func writeLogs(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "containers"))
	if err != nil {
		return err
	}
	var containers []fedContainer
	if err := json.Unmarshal(text, &containers); err != nil {
		return err
	}
	var feeds []*childFeed
	for _, c := range containers {
		f := &childFeed{}
		if f.Feed, err = OpenFeed(FeedOptions{Dir: filepath.Join(dir, c.Name), Path: c.Path, Log: c.Log}); err != nil {
			return err
		}
		for _, s := range []Stream{Stdout, Stderr} {
			name := filepath.Join(dir, c.Name, string(s))
			if f.fifos[s.index()], err = unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
				return err
			}
		}
		feeds = append(feeds, f)
	}
	fmt.Println("open")
	for {
		_, err := os.Stat(filepath.Join(dir, "stop"))
		stopped := err == nil
		moved := 0
		for _, f := range feeds {
			n, err := f.turn()
			if err != nil {
				return err
			}
			moved += n
		}
		if moved > 0 {
			continue
		}
		if stopped {
			break
		}
		waitForOutput(feeds)
	}
	for _, f := range feeds {
		if err := errors.Join(f.Finish(), f.Close()); err != nil { // Finish waits for Flush
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "done"), nil, 0o600)
}

// turn moves what is in the FIFOs, and starts a Flush.
func (f *childFeed) turn() (moved int, err error) {
	if err := f.failed.Load(); err != nil {
		return 0, *err
	}
	f.full = false
	for _, s := range []Stream{Stdout, Stderr} {
		n, err := f.Splice(s, f.fifos[s.index()], 64<<10)
		if errors.Is(err, ErrSpoolFull) {
			f.full, err = true, nil
		}
		if err != nil {
			return moved, err
		}
		moved += n
	}
	if f.Pending() && f.active.CompareAndSwap(false, true) {
		go func() {
			defer f.active.Store(false)
			if err := f.Flush(); err != nil {
				f.failed.Store(&err)
			}
		}()
	}
	if f.full || f.active.Load() {
		moved++ // look again
	}
	return moved, nil
}

// waitForOutput returns when a FIFO has output, and sometimes before.
func waitForOutput(feeds []*childFeed) {
	var fds []unix.PollFd
	for _, f := range feeds {
		for _, fifo := range f.fifos {
			fds = append(fds, unix.PollFd{Fd: int32(fifo), Events: unix.POLLIN})
		}
	}
	_, _ = unix.Poll(fds, 10)
}

// fedContainers are the containers of TestKilledFeed.
var fedContainers = []fedContainer{
	{
		Name: "rotated", Log: Options{MaxBytes: 64 << 10, Keep: maxFiles, Compress: true}, chunk: 3000, size: 1 << 20,
		line: func(r *rand.Rand, i int) []byte { return numberedOrSame(r, i) },
	},
	{
		Name: "plain", follow: true, Log: Options{MaxBytes: 4 << 20, Keep: maxFiles}, chunk: 32 << 10, size: 3 << 20,
		line: func(r *rand.Rand, i int) []byte { return numberedOrSame(r, i) },
	},
	{
		Name: "quiet", Log: Options{MaxBytes: 4000, Keep: maxFiles, Compress: true}, chunk: 60, size: 100 << 10,
		line: func(r *rand.Rand, i int) []byte { return numberedOrSame(r, i) },
	},
	{
		Name: "binary", follow: true, Log: Options{MaxBytes: 256 << 10, Keep: maxFiles}, chunk: 40 << 10, size: 8 << 20,
		line: func(r *rand.Rand, i int) []byte {
			line := make([]byte, []int{0, 1, 10, maxPart - 1, maxPart, maxPart + 1, 3*maxPart + 7}[r.IntN(7)])
			for i := range line {
				line[i] = byte(r.Uint32())
			}
			return append(line, '\n')
		},
	},
	{
		Name: "removed", Log: Options{MaxBytes: 64 << 10, Keep: 3, Compress: true}, chunk: 8000, size: 3 << 20,
		line: func(r *rand.Rand, i int) []byte { return numberedOrSame(r, i) },
	},
}

// numberedOrSame returns many equal lines, and some that have a number.
func numberedOrSame(r *rand.Rand, i int) []byte {
	switch r.IntN(10) {
	case 0:
		return fmt.Appendf(nil, "%d\n", i)
	case 1:
		return []byte("\n")
	}
	return []byte("aaa\n")
}

// maxDelay bounds the time until a process is killed.
const maxDelay = 25 * time.Millisecond

// storm is a run of TestKilledFeed.
type storm struct {
	t          *testing.T
	dir        string
	random     *rand.Rand
	containers []fedContainer
	outputs    [][2][]byte
	writers    sync.WaitGroup

	kills, killed atomic.Int64 // to be done, and done
}

// TestKilledFeed kills the process that writes logs at random moments. The logs must have each byte of the output once, in entries that a
// process that is not killed writes.
func TestKilledFeed(t *testing.T) {
	seed := environment(t, "PODSTEAD_SEED", rand.Uint64())
	t.Logf("PODSTEAD_SEED=%d", seed)
	s := &storm{t: t, dir: memoryDir(t), random: rand.New(rand.NewPCG(seed, 0)), containers: slices.Clone(fedContainers)}
	s.kills.Store(60 * int64(environment(t, "PODSTEAD_STORM", 1)))
	logs := t.TempDir() // on a disk
	for i, c := range s.containers {
		s.containers[i].Path = filepath.Join(logs, c.Name, "0.log")
	}
	text, err := json.Marshal(s.containers)
	if err != nil {
		t.Fatal(err)
	}
	s.create("containers", text)
	s.startWriters()
	followed := s.follow()
	for s.killed.Load() < s.kills.Load() {
		child := startChild(t, s.dir)
		if s.random.IntN(5) > 0 {
			child.awaitOpen(t)
		}
		<-time.After(s.delay(maxDelay))
		child.kill(t)
		s.killed.Add(1)
	}
	s.finish()
	lines := 0
	for i, got := range followed() {
		c := s.containers[i]
		lines += c.check(t, s.outputs[i])
		for j, output := range s.outputs[i] {
			if c.follow && !bytes.Equal(got[j], output) {
				at := equal(got[j], output)
				t.Errorf("container %s, stream %d: a follower read %d bytes, written were %d, equal are %d: got %.80q, want %.80q",
					c.Name, j, len(got[j]), len(output), at, got[j][max(at-20, 0):], output[max(at-20, 0):])
			}
		}
	}
	t.Logf("%d kills, %d lines", s.killed.Load(), lines)
}

// startWriters starts the containers: a goroutine for each stream, which this process does not kill.
func (s *storm) startWriters() {
	t := s.t
	s.outputs = make([][2][]byte, len(s.containers))
	for i, c := range s.containers {
		for j, stream := range []Stream{Stdout, Stderr} {
			path := filepath.Join(s.dir, c.Name, string(stream))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), unix.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			// As that of a container, it is not closed while the log is written.
			fifo, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = fifo.Close() })
			r := rand.New(rand.NewPCG(s.random.Uint64(), 0))
			s.writers.Go(func() {
				var err error
				if s.outputs[i][j], err = s.write(c, fifo, r); err != nil && !t.Failed() {
					t.Error(err)
				}
			})
		}
	}
}

// follow follows the logs while they are written. The function that it returns waits until all of them are read.
func (s *storm) follow() func() [][2][]byte {
	until := make(chan struct{})
	texts := make([][2][]byte, len(s.containers))
	var readers sync.WaitGroup
	for i, c := range s.containers {
		if !c.follow {
			continue
		}
		readers.Go(func() {
			for e, err := range Read(s.t.Context(), c.Path, ReadOptions{Until: until}) {
				if err != nil {
					if s.t.Context().Err() == nil {
						s.t.Error(err)
					}
					return
				}
				if e.Skipped != nil {
					continue
				}
				text := &texts[i][e.Stream.index()]
				if *text = append(*text, e.Text...); !e.Partial {
					*text = append(*text, '\n')
				}
			}
		})
	}
	return func() [][2][]byte {
		close(until)
		readers.Wait()
		return texts
	}
}

// finish lets the processes write the rest of the output. Their end is interrupted, too.
func (s *storm) finish() {
	t := s.t
	child := startChild(t, s.dir)
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.writers.Wait()
	}()
	select {
	case <-written:
	case <-child.done:
		t.Fatalf("the process exited: %v\n%s", child.err, child.output.String())
	case <-time.After(2 * time.Minute):
		_ = child.cmd.Process.Signal(unix.SIGQUIT) // prints its goroutines
		<-child.done
		t.Fatalf("the containers are blocked\n%s", child.output.String())
	}
	s.create("stop", nil)
	for range 10 {
		if child.exited(s.delay(5 * time.Millisecond)) {
			break
		}
		child.kill(t)
		s.killed.Add(1)
		child = startChild(t, s.dir)
	}
	child.wait(t)
	if _, err := os.Stat(filepath.Join(s.dir, "done")); err != nil {
		t.Fatal(err)
	}
}

func (s *storm) create(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// delay returns a random time.
func (s *storm) delay(limit time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(limit)))
}

// write writes the output of a stream, in chunks that are no lines, a part of it before each kill. It returns all of it.
func (s *storm) write(c fedContainer, fifo *os.File, r *rand.Rand) (all []byte, err error) {
	pause := maxDelay * time.Duration(s.kills.Load()) * time.Duration(c.chunk) / time.Duration(c.size) / 2
	sent := 0
	for i := 0; len(all) < c.size; i++ {
		all = append(all, c.line(r, i)...)
		if len(all)-sent < c.chunk/2 {
			continue
		}
		end := len(all)
		if r.IntN(2) == 0 {
			end -= r.IntN(min(end-sent, c.chunk/2)) // within a line
		}
		if _, err := fifo.Write(all[sent:end]); err != nil {
			return all[:sent], err
		}
		sent = end
		<-time.After(time.Duration(r.Int64N(int64(2 * pause))))
		for int64(min(sent, c.size)) > int64(c.size)*(s.killed.Load()+1)/s.kills.Load() && !s.t.Failed() {
			<-time.After(time.Millisecond)
		}
	}
	return all[:sent], nil
}

// check compares the log with the output. It returns the number of lines.
func (c fedContainer) check(t *testing.T, outputs [2][]byte) int {
	t.Helper()
	log := readRaw(t, c.Path, c.Log.Keep)
	lines := 0
	for i, output := range outputs {
		got := log.streams[i]
		if c.Log.Keep < maxFiles { // older files were removed
			output = output[max(len(output)-len(got), 0):]
		}
		if !bytes.Equal(got, output) {
			at := equal(got, output)
			t.Errorf("container %s, stream %d: the log has %d bytes, written were %d, equal are %d: got %.80q, want %.80q",
				c.Name, i, len(got), len(output), at, got[max(at-20, 0):], output[max(at-20, 0):])
		}
		lines += bytes.Count(outputs[i], []byte("\n"))
	}
	if c.Name != "binary" && log.total.Lines != int64(lines) {
		t.Errorf("container %s: the log counts %d lines, written were %d", c.Name, log.total.Lines, lines)
	}
	return lines
}

// equal returns the length of the equal starts.
func equal(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// rawLog is a log without its time stamps. The total has complete lines.
type rawLog struct {
	streams [2][]byte
	total   Count
}

// readRaw reads a log. It checks the tags of its files and the size of the parts of lines.
func readRaw(t *testing.T, path string, keep int) (log rawLog) {
	t.Helper()
	counters := [2]lineCounter{}
	ended := [2]bool{}
	for i := keep - 1; i >= 0; i-- {
		f, err := os.Open(rotated(path, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := newFile(f)
		if err != nil {
			t.Fatal(err)
		}
		in := text.lines()
		for first := true; ; first = false {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
			e, err := Parse(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				t.Fatalf("%s: line %q: %v", f.Name(), line, err)
			}
			if first && log.total.Bytes == 0 && e.start != nil {
				log.total = *e.start // older files were removed
			} else if first && log.total.Bytes > 0 && (e.start == nil || *e.start != log.total) {
				t.Fatalf("%s: begins after %+v, want %+v", f.Name(), e.start, log.total)
			}
			s := e.Stream.index()
			if ended[s] {
				t.Fatalf("%s: %s continues after its end: %q", f.Name(), e.Stream, line)
			}
			ended[s] = e.Partial && len(e.Text) != maxPart
			log.total.Bytes += int64(len(line))
			log.total.Lines += counters[s].entry(e.Partial)
			log.streams[s] = append(log.streams[s], e.Text...)
			if !e.Partial {
				log.streams[s] = append(log.streams[s], '\n')
			}
		}
		_ = f.Close()
	}
	return log
}

// childProcess is a process that runs writeLogs.
type childProcess struct {
	cmd    *exec.Cmd
	output strings.Builder // of errors, valid when it is done
	opened chan struct{}
	done   chan struct{}
	err    error // valid when it is done
}

func startChild(t *testing.T, dir string) *childProcess {
	t.Helper()
	c := &childProcess{cmd: exec.CommandContext(t.Context(), os.Args[0]), opened: make(chan struct{}), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childDir+"="+dir)
	c.cmd.Stderr = &c.output
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		var line [8]byte
		if n, _ := out.Read(line[:]); n > 0 {
			close(c.opened)
		}
		c.err = c.cmd.Wait()
	}()
	return c
}

func (c *childProcess) awaitOpen(t *testing.T) {
	t.Helper()
	select {
	case <-c.opened:
	case <-c.done:
		t.Fatalf("the process exited: %v\n%s", c.err, c.output.String())
	case <-time.After(time.Minute):
		t.Fatal("the process does not open its logs")
	}
}

// exited reports whether the process exits before a time.
func (c *childProcess) exited(timeout time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

func (c *childProcess) kill(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Kill()
	<-c.done
	if c.output.Len() > 0 {
		t.Fatalf("the process failed before it was killed: %s", c.output.String())
	}
}

// wait waits for the end of the process.
func (c *childProcess) wait(t *testing.T) {
	t.Helper()
	if !c.exited(2 * time.Minute) {
		_ = c.cmd.Process.Kill()
		t.Fatal("the logs are not complete")
	}
	if c.err != nil {
		t.Fatalf("the process failed: %v\n%s", c.err, c.output.String())
	}
}

// environment returns the number in a variable of package rig, which imports this package.
func environment(t *testing.T, name string, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// memoryDir returns a directory on a tmpfs. It also removes those of tests that were killed.
func memoryDir(t testing.TB) string {
	t.Helper()
	const prefix = "/dev/shm/podstead-feed-"
	remove := func(dir string) {
		_ = unix.Unmount(filepath.Join(dir, "small"), unix.MNT_DETACH) // see smallDir
		_ = os.RemoveAll(dir)
	}
	left, _ := filepath.Glob(prefix + "*")
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(dir, prefix), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, fs.ErrNotExist) {
			remove(dir)
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(prefix), fmt.Sprintf("%s%d-", filepath.Base(prefix), os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(dir) })
	return dir
}
