package crilog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fed is a feed under test, and where it is.
type fed struct {
	*Feed
	t testing.TB
	o FeedOptions
}

func openFed(t testing.TB, o Options) *fed {
	t.Helper()
	f := &fed{t: t, o: FeedOptions{Dir: filepath.Join(memoryDir(t), "feed"), Path: filepath.Join(t.TempDir(), "app/0.log"), Log: o}}
	f.reopen()
	return f
}

// reopen opens the feed as another process does after a kill: the one before is not closed.
func (f *fed) reopen() {
	f.t.Helper()
	before := f.Feed
	var err error
	if f.Feed, err = OpenFeed(f.o); err != nil {
		f.t.Fatal(err)
	}
	if before != nil { // what the kernel does
		if err := before.Close(); err != nil {
			f.t.Fatal(err)
		}
	}
	feed := f.Feed
	f.t.Cleanup(func() { _ = feed.Close() })
}

// Append spools output, or as much of it as there is room for, as [Feed.Splice] moves it from a pipe.
func (f *fed) Append(s Stream, out []byte) (n int, err error) { return splice(f.Feed, s, out) }

func splice(f *Feed, s Stream, out []byte) (n int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	for len(out) > 0 {
		written, err := unix.Write(ends[1], out)
		if err != nil {
			return n, err
		}
		moved, err := f.Splice(s, ends[0], written)
		if n += moved; err != nil && n > 0 {
			return n, nil
		}
		if err != nil || moved < written {
			return n, err
		}
		out = out[moved:]
	}
	return n, nil
}

// put spools output, and writes it to the log.
func (f *fed) put(s Stream, out string) {
	f.t.Helper()
	for len(out) > 0 {
		n, err := f.Append(s, []byte(out))
		if err != nil {
			f.t.Fatal(err)
		}
		out = out[n:]
		f.flush()
	}
}

func (f *fed) flush() {
	f.t.Helper()
	if err := f.Flush(); err != nil {
		f.t.Fatal(err)
	}
	if f.Pending() {
		f.t.Fatal("pending after Flush")
	}
}

func (f *fed) finish() {
	f.t.Helper()
	if err := f.Finish(); err != nil {
		f.t.Fatal(err)
	}
}

var stamps = regexp.MustCompile(`(?m)^\S+Z `)

// log returns the current file without time stamps.
func (f *fed) log() string {
	f.t.Helper()
	return stamps.ReplaceAllString(content(f.t, f.o.Path), "")
}

func (f *fed) want(want string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.log()); diff != "" {
		f.t.Errorf("log (-want +got)\n%s", diff)
	}
}

// TestFeedFormat checks the format of the log, also if each part is written by another process.
func TestFeedFormat(t *testing.T) {
	type part struct {
		stream Stream
		out    string
	}
	parts := []part{
		{Stdout, "one\n\ntwo\nthr"},
		{Stderr, "no "},
		{Stdout, "ee\n"},
		{Stdout, strings.Repeat("a", maxPart)},
		{Stdout, "\n"},
		{Stderr, strings.Repeat("b", 3*maxPart+1)},
		{Stdout, "\x00\xff\r\n"},
		{Stderr, "end"},
		{Stdout, "last"},
	}
	path := filepath.Join(t.TempDir(), "0.log")
	w := open(t, path, Options{})
	whole := map[Stream]string{}
	for _, p := range parts {
		whole[p.stream] += p.out
	}
	copyAll(w, Stdout, whole[Stdout])
	copyAll(w, Stderr, whole[Stderr])
	want := stamps.ReplaceAllString(content(t, path), "")
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			f := openFed(t, Options{})
			for _, s := range []Stream{Stdout, Stderr} { // in the order of the other log
				for _, p := range parts {
					if p.stream == s {
						f.put(p.stream, p.out)
						if killed {
							f.reopen()
						}
					}
				}
				if s == Stdout {
					f.finish()
				}
			}
			for range 2 { // the second time, nothing is left
				f.finish()
				f.reopen()
			}
			f.want(want)
		})
	}
}

// crashing is a ledger of a process that is killed in a step.
type crashing struct {
	ledger
	step   string
	killed bool
}

func (c *crashing) reach(step string) {
	if step == c.step {
		c.killed = true
		panic("killed")
	}
}

func (c *crashing) intend(next progress, b []byte) (int, error) {
	c.reach("before the record")
	n, err := c.ledger.intend(next, b)
	c.reach("before the write")
	return n, err
}

func (c *crashing) settle() {
	if !c.killed { // deferred functions do not run after a kill
		c.reach("after the write")
		c.ledger.settle()
		c.reach("after the record")
	}
}

// kill makes Flush stop in a step. It returns the writer.
func (f *fed) kill(step string) (w *feedWriter) {
	f.t.Helper()
	w, err := f.wake()
	if err != nil {
		f.t.Fatal(err)
	}
	w.ledger = &crashing{ledger: w, step: step}
	defer func() {
		if recover() == nil {
			f.t.Fatal("the process reached its end")
		}
	}()
	_ = f.Flush()
	return w
}

func (f *fed) appendToLog(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.o.Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
}

// TestInterruptedWrite kills the process in each step of a write.
func TestInterruptedWrite(t *testing.T) {
	tests := []struct {
		name, step string
		between    func(f *fed, size int64) // what is in the file after the kill
		same       bool                     // the time stamps are those of the first attempt
		lost       bool                     // what was in the log is not there any more
	}{
		{name: "before the record", step: "before the record"},
		{name: "before the write", step: "before the write", same: true},
		{name: "after the write", step: "after the write", same: true},
		{name: "after the record", step: "after the record", same: true},
		{
			name: "a part of the write", step: "before the write", same: true,
			between: func(f *fed, _ int64) {
				stamp := f.w.at.UTC().Format(timeFormat)
				f.appendToLog(stamp + " stdout F bbb\n" + stamp + " stdou")
			},
		},
		{
			name: "a part of the write, and somebody has written", step: "before the write", same: true,
			between: func(f *fed, _ int64) { f.appendToLog("aaa") },
		},
		{
			name: "file removed", step: "before the write", lost: true,
			between: func(f *fed, _ int64) { remove(f.t.(*testing.T), f.o.Path) },
		},
		{
			name: "file truncated by somebody", step: "before the write", lost: true,
			between: func(f *fed, size int64) {
				if err := os.Truncate(f.o.Path, 0); err != nil {
					f.t.Fatal(err)
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := openFed(t, Options{})
			f.put(Stdout, "aaa\naaa\nbb")
			if _, err := f.Append(Stdout, []byte("b\naaa\naaa\ncc")); err != nil {
				t.Fatal(err)
			}
			w := f.kill(tt.step)
			at := w.at.UTC().Format(timeFormat)
			if tt.between != nil {
				tt.between(f, w.size)
			}
			f.reopen()
			f.put(Stdout, "c\n")
			f.finish()
			want := "stdout F bbb\nstdout F aaa\nstdout F aaa\nstdout F ccc\n"
			if !tt.lost {
				want = "stdout F aaa\nstdout F aaa\n" + want
			}
			if tt.name == "file removed" || tt.name == "file truncated by somebody" {
				want = strings.Replace(want, "stdout F bbb", "stdout F:lines=2:bytes=88 bbb", 1)
			}
			f.want(want)
			got := strings.Count(content(t, f.o.Path), at)
			if tt.same && got != 3 || tt.step == "before the record" && got != 0 {
				t.Errorf("%d entries have the time %s:\n%s", got, at, content(t, f.o.Path))
			}
		})
	}
}

// TestResumeFreesSpool checks that the memory of what is in the log is freed if a kill has prevented it.
func TestResumeFreesSpool(t *testing.T) {
	f := openFed(t, Options{})
	if _, err := f.Append(Stdout, []byte(strings.Repeat("x", 9999)+"\n")); err != nil {
		t.Fatal(err)
	}
	f.kill("after the record")
	f.reopen()
	f.flush()
	var stat unix.Stat_t
	if err := unix.Stat(f.spoolPath(Stdout), &stat); err != nil || stat.Size != 10000 || stat.Blocks != 0 {
		t.Errorf("the spool has %d bytes and %d blocks (%v)", stat.Size, stat.Blocks, err)
	}
}

// TestResumeWithoutDescriptors checks that nothing is doubled if it cannot be found out whether a write was made.
func TestResumeWithoutDescriptors(t *testing.T) {
	f := openFed(t, Options{})
	if _, err := f.Append(Stdout, []byte("aaa\n")); err != nil {
		t.Fatal(err)
	}
	f.kill("after the write")
	f.reopen()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	free, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(free)
	for more := range 2 { // descriptors
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free + more), Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		if err := f.Flush(); !errors.Is(err, unix.EMFILE) || !f.Pending() {
			t.Errorf("with %d descriptors: error %v, want %v", more, err, unix.EMFILE)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	f.flush()
	f.want("stdout F aaa\n")
	for _, err := range []error{unix.ENOENT, unix.ENOTDIR, errLink, errNotRegular, nil} {
		if temporary(err) != nil {
			t.Errorf("%v would block the container", err)
		}
	}
}

// TestResumeCompression checks that files are compressed that another process has left uncompressed.
func TestResumeCompression(t *testing.T) {
	f := openFed(t, Options{MaxBytes: 100, Keep: 4})
	f.put(Stdout, strings.Repeat("x", 50)+"\n")
	f.put(Stdout, strings.Repeat("y", 50)+"\n")
	f.o.Log.Compress = true
	f.reopen()
	f.flush()
	for deadline := time.After(time.Minute); !strings.HasPrefix(content(t, rotated(f.o.Path, 1)), string(gzipMagic)); {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("the file is not compressed")
		}
	}
	f.finish()
	if got := texts(t, f.o.Path, ReadOptions{}); len(got) != 2 {
		t.Errorf("lines %q", got)
	}
}

// TestWriteOutcome checks what the size of a file means after a kill.
func TestWriteOutcome(t *testing.T) {
	tests := []struct {
		name  string
		write feedWrite
		size  int64
		want  outcome
	}{
		{"no write", feedWrite{}, 100, unwritten},
		{"first write of a file, not made", feedWrite{Length: 10}, 0, unwritten},
		{"first write of a file, made", feedWrite{Length: 10}, 10, written},
		{"not made", feedWrite{Start: 100, Length: 10}, 100, unwritten},
		{"one byte", feedWrite{Start: 100, Length: 10}, 101, torn},
		{"all but one byte", feedWrite{Start: 100, Length: 10}, 109, torn},
		{"made", feedWrite{Start: 100, Length: 10}, 110, written},
		{"made, and somebody has appended", feedWrite{Start: 100, Length: 10}, 111, written},
		{"truncated by somebody", feedWrite{Start: 100, Length: 10}, 99, unwritten},
		{"emptied by somebody", feedWrite{Start: 100, Length: 10}, 0, unwritten},
		{"removed by somebody", feedWrite{Start: 100, Length: 10}, -1, unwritten},
		{"largest sizes", feedWrite{Start: 1<<63 - 2, Length: 1<<63 - 1}, 1<<63 - 1, torn},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.write.outcome(tt.size); got != tt.want {
				t.Errorf("outcome %d, want %d", got, tt.want)
			}
		})
	}
}

// TestInterruptedRotation checks that a rotation that was killed between two renames is finished, and removes no further file.
func TestInterruptedRotation(t *testing.T) {
	line := strings.Repeat("x", 50) + "\n"
	for done := range 4 { // renames
		t.Run(fmt.Sprintf("after %d renames", done), func(t *testing.T) {
			f := openFed(t, Options{MaxBytes: 100, Keep: 4})
			for i := range 6 {
				f.put(Stdout, fmt.Sprint(i)+line)
			}
			for i := 2; i > 2-done; i-- { // what the killed process did
				if err := os.Rename(rotated(f.o.Path, i), rotated(f.o.Path, i+1)); err != nil {
					t.Fatal(err)
				}
			}
			f.reopen()
			f.put(Stdout, "6"+line)
			var got []string
			for _, text := range texts(t, f.o.Path, ReadOptions{}) {
				got = append(got, text[:1])
			}
			if diff := cmp.Diff([]string{"3", "4", "5", "6"}, got); diff != "" {
				t.Errorf("lines (-want +got)\n%s", diff)
			}
		})
	}
}

// TestDamagedRecord checks that nothing is doubled if it is unknown what is in the log, and that the log says so.
func TestDamagedRecord(t *testing.T) {
	record := func(f *fed) string { return filepath.Join(f.o.Dir, "log.record") }
	edit := func(edit func(b []byte) []byte) func(f *fed) error {
		return func(f *fed) error {
			b, err := os.ReadFile(record(f))
			if err != nil {
				return err
			}
			return os.WriteFile(record(f), edit(b), 0o600)
		}
	}
	tests := []struct {
		name   string
		damage func(f *fed) error
		err    string // empty: the log continues
		lost   int    // bytes
	}{
		{"changed byte", edit(func(b []byte) []byte { b[40]++; return b }), "", 9},
		{"no magic", edit(func(b []byte) []byte { b[0]++; return b }), "", 9},
		{"cut", edit(func(b []byte) []byte { return b[:len(b)-1] }), "", 9},
		{"cut in the header", edit(func(b []byte) []byte { return b[:7] }), "", 9},
		{"empty", edit(func(b []byte) []byte { return nil }), "", 9},
		{"zeros", edit(func(b []byte) []byte { clear(b); return b }), "", 9},
		{"removed", func(f *fed) error { return os.Remove(record(f)) }, "", 9},
		{"spool removed", func(f *fed) error { return os.Remove(f.spoolPath(Stdout)) }, "", 0},
		{"another version", edit(func(b []byte) []byte { b[6] = 9; return b }), "version 9 of the record is not supported, want 1", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := openFed(t, Options{})
			f.put(Stdout, "in the log\n")
			if _, err := f.Append(Stdout, []byte("unknown?\n")); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(f); err != nil {
				t.Fatal(err)
			}
			if tt.err != "" {
				if _, err := OpenFeed(f.o); err == nil || !strings.Contains(err.Error(), record(f)+": "+tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			f.reopen()
			f.put(Stdout, "after\n")
			f.reopen() // the notice is not repeated
			f.flush()
			lost := regexp.MustCompile(`damaged, up to (\d+) bytes of output before this line are lost\n`).FindStringSubmatch(f.log())
			if lost == nil {
				t.Fatalf("the log does not tell that the record was damaged:\n%s", f.log())
			}
			if n, err := strconv.Atoi(lost[1]); err != nil || n < tt.lost || n > tt.lost+4096 {
				t.Errorf("up to %s bytes are lost, want %d", lost[1], tt.lost)
			}
			want := "stdout F in the log\nstderr F podstead: the record of the log was " + lost[0] + "stdout F after\n"
			f.want(want)
		})
	}
}

// TestFeedRateLimit checks that a kill neither fills the bucket nor forgets dropped lines.
func TestFeedRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFed(t, Options{Rate: Rate{Lines: 3}})
		for range 4 {
			f.put(Stdout, strings.Repeat("aaa\n", 5))
			f.reopen()
		}
		want := strings.Repeat("stdout F aaa\n", 3)
		f.want(want)
		f.flush()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		f.want(want)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want += "stderr F podstead: 17 lines dropped in 10s (rate limit 3 lines/s)\n"
		f.want(want)
		f.put(Stdout, strings.Repeat("aaa\n", 5))
		f.reopen()
		time.Sleep(2 * time.Second)
		f.finish()
		want += strings.Repeat("stdout F aaa\n", 3) + "stderr F podstead: 2 lines dropped in 2s (rate limit 3 lines/s)\n"
		f.want(want)
		f.finish()
		f.want(want)
	})
}

// TestFeedLimitsChange checks limits that are changed while the container runs.
func TestFeedLimitsChange(t *testing.T) {
	f := openFed(t, Options{Rate: Rate{Lines: 1}})
	f.put(Stdout, "a\nb\n")
	if err := f.SetLimits(Options{MaxBytes: 10, Keep: 2}); err != nil {
		t.Fatal(err)
	}
	f.want("stdout F a\nstderr F podstead: 1 lines dropped in 1s (rate limit 1 lines/s)\n")
	f.put(Stdout, "c\nd\n")
	if got := f.log(); !strings.HasSuffix(got, " c\nstdout F d\n") || strings.Contains(got, "dropped") {
		t.Errorf("log after rotation and without a limit of the rate:\n%s", got)
	}
}

// TestSpoolFull checks that a spool that is full accepts nothing until the log is written, and that it uses no memory then.
func TestSpoolFull(t *testing.T) {
	f := openFed(t, Options{})
	f.flush()
	line := strings.Repeat("x", 999) + "\n"
	sent := 0
	for {
		n, err := f.Append(Stdout, []byte(line)[sent%1000:])
		if errors.Is(err, ErrSpoolFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sent += n
	}
	if sent != maxSpool {
		t.Errorf("the spool took %d bytes", sent)
	}
	if !f.Pending() {
		t.Error("nothing is pending")
	}
	if _, err := f.Append(Stderr, []byte("other\n")); err != nil {
		t.Error("the other stream: ", err)
	}
	f.flush()
	f.put(Stdout, line[sent%1000:])
	if got, want := len(texts(t, f.o.Path, ReadOptions{})), sent/1000+2; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	for _, s := range []Stream{Stdout, Stderr} {
		var stat unix.Stat_t
		if err := unix.Stat(f.spoolPath(s), &stat); err != nil || stat.Blocks != 0 {
			t.Errorf("spool of %s: %d blocks (%v)", s, stat.Blocks, err)
		}
	}
}

// TestSplice checks the results for FIFOs in all states.
func TestSplice(t *testing.T) {
	f := openFed(t, Options{})
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	if n, err := f.Splice(Stdout, fds[0], 100); n != 0 || err != nil {
		t.Errorf("empty: %d, %v", n, err)
	}
	if _, err := unix.Write(fds[1], []byte("one\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Splice(Stdout, fds[0], 5); n != 5 || err != nil {
		t.Errorf("limited: %d, %v", n, err)
	}
	if n, err := f.Splice(Stdout, fds[0], 100); n != 3 || err != nil {
		t.Errorf("rest: %d, %v", n, err)
	}
	_ = unix.Close(fds[1])
	if n, err := f.Splice(Stdout, fds[0], 100); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("closed: %d, %v", n, err)
	}
	f.flush()
	f.want("stdout F one\nstdout F two\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Splice(Stdout, fds[0], 100); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed feed: %v", err)
	}
	if err := f.Flush(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed feed: %v", err)
	}
}

// TestObserve checks that each chunk is observed once, also the start of a line that is read again.
func TestObserve(t *testing.T) {
	f := openFed(t, Options{})
	observed := map[Stream]string{}
	f.o.Observe = func(s Stream, chunk []byte) { observed[s] += string(chunk) }
	f.reopen()
	want := strings.Repeat("y", 5*readSize) + "\nprompt> answer\nrest"
	f.put(Stdout, want[:5*readSize+9])
	f.put(Stderr, "errors")
	f.put(Stdout, want[5*readSize+9:])
	f.finish()
	if diff := cmp.Diff(map[Stream]string{Stdout: want, Stderr: "errors"}, observed); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// hanging is a ledger of a log whose disk hangs.
type hanging struct {
	ledger
	hangs, ends chan struct{}
}

func (h hanging) intend(next progress, b []byte) (int, error) {
	h.hangs <- struct{}{}
	<-h.ends
	return h.ledger.intend(next, b)
}

// TestHangingDisk checks that output is spooled while the disk of the log hangs, and that the container waits when the spool is full.
func TestHangingDisk(t *testing.T) {
	f := openFed(t, Options{MaxBytes: 64 << 20})
	if _, err := f.Append(Stdout, []byte("aaa\n")); err != nil {
		t.Fatal(err)
	}
	w, err := f.wake()
	if err != nil {
		t.Fatal(err)
	}
	h := hanging{w, make(chan struct{}), make(chan struct{})}
	w.ledger = h
	flushed := make(chan error)
	go func() { flushed <- f.Flush() }()
	<-h.hangs
	want := 1
	for chunk := []byte(strings.Repeat("aaa\n", 100)); ; {
		n, err := f.Append(Stdout, chunk)
		if errors.Is(err, ErrSpoolFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		want += n / 4
	}
	if want != maxSpool/4 || !f.Pending() {
		t.Errorf("spooled %d lines, pending %v", want, f.Pending())
	}
	close(h.ends)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	f.flush()
	if got := strings.Count(content(t, f.o.Path), " aaa\n"); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

// TestFeedFollowsNoLinks is [TestWriterFollowsNoLinks] for a feed whose process was killed while it wrote.
func TestFeedFollowsNoLinks(t *testing.T) {
	for _, test := range planted {
		t.Run(test.name, func(t *testing.T) {
			path, victim := plantLog(t)
			before := contents(t, filepath.Dir(victim))
			f := openFed(t, Options{})
			f.o.Path = path
			f.reopen()
			if _, err := f.Append(Stdout, []byte("* * * * * root intruder\n")); err != nil {
				t.Fatal(err)
			}
			f.kill("before the write")
			f.reopen()
			remove(t, path)
			if err := test.plant(path, victim); err != nil {
				t.Fatal(err)
			}
			f.flush()
			if got := contents(t, filepath.Dir(victim)); got != before {
				t.Errorf("files of the host are\n%s\nwant\n%s", got, before)
			}
			for _, mended := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
				if err := os.RemoveAll(mended); err != nil {
					t.Fatal(err)
				}
			}
			f.reopen() // the loss is in the record
			f.put(Stdout, "mended\n")
			text := f.log()
			if !strings.Contains(text, "1 lines") || !strings.Contains(text, test.cause) || !strings.HasSuffix(text, "mended\n") {
				t.Errorf("the mended log is %q", text)
			}
		})
	}
}

// TestFlushEnds checks that Flush returns although a container floods its log, so that others who need the log get their turn.
func TestFlushEnds(t *testing.T) {
	f := openFed(t, Options{})
	chunks := 0
	f.o.Observe = func(s Stream, _ []byte) {
		if _, err := f.Append(s, []byte("more\nmo")); err != nil {
			t.Error(err)
		}
		if chunks++; chunks > 100 {
			t.Fatal("Flush does not return")
		}
	}
	f.reopen()
	if _, err := f.Append(Stdout, []byte("one\ntwo\nth")); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(); err != nil || !f.Pending() {
		t.Errorf("pending %v (%v)", f.Pending(), err)
	}
	f.want("stdout F one\nstdout F two\n")
	if err := f.Flush(); err != nil {
		t.Error(err)
	}
	f.want("stdout F one\nstdout F two\nstdout F thmore\n")
}

// TestTerminal checks that a terminal has one stream.
func TestTerminal(t *testing.T) {
	f := openFed(t, Options{})
	f.o.Terminal = true
	f.reopen()
	f.put(Stdout, "one\r\n")
	f.want("stdout F one\r\n")
	if _, err := f.Append(Stderr, []byte("x")); err == nil || !strings.Contains(err.Error(), "terminal") {
		t.Errorf("standard error of a terminal: %v", err)
	}
}

// entries is a sink.
type entries []string

func (e *entries) Entry(_ time.Time, s Stream, partial bool, text []byte) {
	*e = append(*e, fmt.Sprintf("%s %v %s", s, partial, text))
}

func (*entries) Close() int64 { return 7 }

func TestFeedSink(t *testing.T) {
	f := openFed(t, Options{})
	var sink entries
	f.CopyTo(&sink)
	f.put(Stdout, "one\ntwo")
	f.finish()
	f.finish() // a sink is closed once
	if diff := cmp.Diff(entries{"stdout false one", "stdout false two"}, sink); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	f.want("stdout F one\nstdout P two\n" +
		"stderr F podstead: 7 lines of the log are not in the journal, journald did not accept them in time\n")
}

// smallDir mounts a tmpfs of 64 KiB.
func smallDir(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := filepath.Join(memoryDir(t), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestFeedDiskFull checks that lines that do not fit on the disk are counted over a kill, and reported once.
func TestFeedDiskFull(t *testing.T) {
	dir := smallDir(t)
	f := openFed(t, Options{})
	f.o.Path = filepath.Join(dir, "0.log")
	f.reopen()
	ballast := filepath.Join(dir, "ballast")
	f.put(Stdout, "kept\n")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error %v, want no space", err)
	}
	// More than the last page of the file.
	f.put(Stdout, strings.Repeat(strings.Repeat("l", 99)+"\n", 100))
	f.reopen()
	f.put(Stderr, strings.Repeat(strings.Repeat("m", 99)+"\n", 100))
	f.reopen()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.put(Stdout, "again\n")
	f.reopen()
	f.finish()
	got := texts(t, f.o.Path, ReadOptions{})
	if len(got) != 3 || got[0] != "kept" || got[2] != "again" || !strings.Contains(got[1], "200 lines (28000 bytes) of the log since") ||
		!strings.HasSuffix(got[1], "are lost: no space left on device") {
		t.Errorf("log: %q", got)
	}
}

// TestFullSpoolDirectory checks that output waits in its FIFO if the spool has no memory, and that the record can be written.
func TestFullSpoolDirectory(t *testing.T) {
	dir := smallDir(t)
	f := openFed(t, Options{})
	f.o.Dir = filepath.Join(dir, "feed")
	f.reopen()
	f.flush()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	want := 0
	for full := 0; full < 3; {
		if n, err := unix.Write(fds[1], []byte(strings.Repeat("aaa\n", 1000))); err == nil {
			want += n / 4
		}
		if _, err := f.Splice(Stdout, fds[0], 64<<10); errors.Is(err, ErrSpoolFull) {
			if full++; !errors.Is(err, unix.ENOSPC) {
				t.Errorf("error %v, want no space", err)
			}
			f.flush()
			f.reopen()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n > 0; {
		var err error
		if n, err = f.Splice(Stdout, fds[0], 64<<10); err != nil {
			t.Fatal(err)
		}
		f.flush()
	}
	f.finish()
	if got := strings.Count(content(t, f.o.Path), " aaa\n"); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

// FuzzRecord checks that a record is read as it was written or refused, and that no bytes cause a panic.
func FuzzRecord(f *testing.F) {
	r := feedRecord{
		Before: feedState{Streams: [2]streamState{{Read: 5, Parts: 1, Dropped: true}, {Unended: true}}, Total: Count{1, 2}, Counted: true},
		Write:  feedWrite{1, 2, 3, 4, 5},
		Cause:  strings.Repeat("no space left on device", 100),
	}
	b, err := r.encode()
	if err != nil {
		f.Fatal(err)
	}
	if len(b) > 4096 {
		f.Fatalf("a record has %d bytes, more than a page", len(b))
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte(recordMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			if r != (feedRecord{}) {
				t.Fatalf("a record beside the error %v: %+v", err, r)
			}
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := decodeRecord(again); err != nil || twice != r {
			t.Fatalf("got %+v, then %+v (%v)", r, twice, err)
		}
	})
}

// places returns the places of feeds.
func places(t testing.TB, n int) []FeedOptions {
	t.Helper()
	dir, logs := memoryDir(t), t.TempDir()
	o := make([]FeedOptions, n)
	for i := range o {
		o[i] = FeedOptions{Dir: filepath.Join(dir, fmt.Sprint(i)), Path: filepath.Join(logs, fmt.Sprint(i), "0.log")}
	}
	return o
}

// restingFeeds opens feeds that have written a line, and the start of another.
func restingFeeds(t testing.TB, places []FeedOptions) []*Feed {
	t.Helper()
	feeds := make([]*Feed, len(places))
	for i, o := range places {
		f, err := OpenFeed(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := splice(f, Stdout, []byte("line\nprompt> ")); err != nil {
			t.Fatal(err)
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		feeds[i] = f
	}
	t.Cleanup(func() {
		for _, f := range feeds {
			_ = f.Close()
		}
	})
	return feeds
}

// TestRestingFeeds checks what a feed at rest costs: no descriptors, no goroutines, and little memory.
func TestRestingFeeds(t *testing.T) {
	const n = 200
	_ = restingFeeds(t, places(t, 1)) // what is allocated once
	places := places(t, n)            // the caller has these texts
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 { // empties the pool, too
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	memory, open, goroutines := heap(), files(), runtime.NumGoroutine()
	feeds := restingFeeds(t, places)
	each := (float64(heap()) - float64(memory)) / n
	t.Logf("%.0f bytes for each of %d feeds", each, n)
	if each > 300 {
		t.Errorf("a feed at rest uses %.0f bytes of heap", each)
	}
	if more := files() - open; more > 0 {
		t.Errorf("%d feeds at rest have %d open files", n, more)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 0 {
		t.Errorf("%d feeds at rest have %d goroutines", n, more)
	}
	runtime.KeepAlive(feeds)
	runtime.KeepAlive(places)
}

// BenchmarkFeed measures a line of a container that writes slowly, and a full chunk.
func BenchmarkFeed(b *testing.B) {
	for _, size := range []int{50, 64 << 10} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			f := openFed(b, Options{})
			out := strings.Repeat(strings.Repeat("x", 49)+"\n", size/50)
			b.SetBytes(int64(len(out)))
			b.ReportAllocs()
			for b.Loop() {
				f.put(Stdout, out)
			}
		})
	}
}
