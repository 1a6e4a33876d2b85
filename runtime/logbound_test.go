package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// logs creates files of 64 KiB in a directory of logs, the first one is the oldest.
func logs(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-len(names)) * time.Minute)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// left returns the files of a directory.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCheck(t *testing.T) {
	all := []string{
		"gone_1/c/0.log.1", "a_2/c/3.log.2", "gone_1/c/0.log", "a_2/c/2.log", "a_2/c/3.log.1", "b_3/c/0.log.1", "a_2/c/3.log",
		"b_3/c/0.log",
	}
	running := map[string]bool{"a_2/c/3.log": true, "b_3/c/0.log": true}
	for name, test := range map[string]struct {
		files int // of 64 KiB that the limit allows
		err   error
		want  []string
	}{
		"below the limit": {
			files: 8,
			want: []string{
				"a_2/c/2.log", "a_2/c/3.log", "a_2/c/3.log.1", "a_2/c/3.log.2", "b_3/c/0.log", "b_3/c/0.log.1", "gone_1/c/0.log",
				"gone_1/c/0.log.1",
			},
		},
		"rotated files, the oldest first": {
			files: 7, want: []string{"a_2/c/2.log", "a_2/c/3.log", "a_2/c/3.log.1", "b_3/c/0.log", "b_3/c/0.log.1", "gone_1/c/0.log"},
		},
		"then those of finished runs": {files: 3, want: []string{"a_2/c/3.log", "b_3/c/0.log"}},
		"never those of running ones": {files: 1, want: []string{"a_2/c/3.log", "b_3/c/0.log"}},
		"all current files if it is not known which run": {
			files: 1, err: errors.New("engine unavailable"), want: []string{"a_2/c/2.log", "a_2/c/3.log", "b_3/c/0.log", "gone_1/c/0.log"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := logs(t, all...)
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a_2/c/9.log.1")); err != nil {
				t.Fatal(err)
			}
			var messages bytes.Buffer
			b := newLogBound(logBoundOptions{
				Dir: dir, Max: int64(test.files) * 64 << 10,
				Log: slog.New(slog.NewTextHandler(&messages, nil)), Running: func(context.Context) (map[string]bool, error) {
					paths := map[string]bool{}
					for log := range running {
						paths[filepath.Join(dir, log)] = true
					}
					return paths, test.err
				},
			})
			used, _, err := b.Check(t.Context())
			if !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if err := os.Remove(filepath.Join(dir, "a_2/c/9.log.1")); err != nil {
				t.Errorf("a link was removed: %v", err)
			}
			got := left(t, dir)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if want := int64(len(got)) * 64 << 10; used != want {
				t.Errorf("used %d, want %d", used, want)
			}
			removed := len(got) < len(all) && test.err == nil
			if got := strings.Contains(messages.String(), "removed the oldest logs"); got != removed {
				t.Errorf("message %v, want %v: %s", got, removed, &messages)
			}
			if exceeds := strings.Contains(messages.String(),
				"the rest is the current logs"); exceeds != (test.files == 1 && test.err == nil) {
				t.Errorf("messages: %s", &messages)
			}
		})
	}
}

// TestTemporaryFiles checks that a file that is being written is kept, and one that was left by a crash is removed.
func TestTemporaryFiles(t *testing.T) {
	dir := logs(t, "a_1/c/0.log.compressing", "a_1/c/1.log.compressing", "a_1/c/1.log")
	old := time.Now().Add(-2 * abandonedLog)
	if err := os.Chtimes(filepath.Join(dir, "a_1/c/0.log.compressing"), old, old); err != nil {
		t.Fatal(err)
	}
	b := newLogBound(logBoundOptions{
		Dir: dir, Max: 1, Log: slog.New(slog.DiscardHandler),
		Running: func(context.Context) (map[string]bool, error) {
			return map[string]bool{filepath.Join(dir, "a_1/c/1.log"): true}, nil
		},
	})
	if _, _, err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a_1/c/1.log", "a_1/c/1.log.compressing"}, left(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestLimit checks the default: a tenth of the file system, at most 4 GiB, also before the directory exists.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "not/yet")} {
		limit, err := newLogBound(logBoundOptions{Dir: path}).Limit()
		if err != nil || limit < 1<<20 || limit > defaultLogMax {
			t.Errorf("%s: %d, %v", path, limit, err)
		}
	}
}

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		before, used, limit int64
		want                time.Duration
	}{
		"the first":          {-1, 0, 1000, minLogPause},
		"no growth":          {500, 500, 1000, quietLogPause},
		"slow growth":        {500, 501, 1000, quietLogPause},
		"half of 5s":         {400, 500, 1000, 2500 * time.Millisecond},
		"fast growth":        {0, 900, 1000, minLogPause},
		"over the limit":     {900, 1100, 1000, minLogPause},
		"far from the limit": {0, 0, 100 << 30, maxLogPause},
		"30s of a burst":     {0, 0, 30 * logBurst, 30 * time.Second},
		"growth beside that": {0, logBurst, 31 * logBurst, 15 * time.Second},
	} {
		if got := nextLogCheck(test.before, test.used, test.limit, time.Second); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestRun checks that logs are bounded at the start, and reports errors once a minute.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var messages bytes.Buffer
		dir := logs(t, "a_1/c/0.log.2", "a_1/c/0.log.1", "a_1/c/0.log")
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		b := newLogBound(logBoundOptions{
			Dir: dir, Max: 64 << 10, Log: slog.New(slog.NewTextHandler(&messages, nil)),
			Running: func(context.Context) (map[string]bool, error) {
				return nil, fmt.Errorf("engine unavailable")
			},
		})
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		<-done
		if diff := cmp.Diff([]string{"a_1/c/0.log"}, left(t, dir)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
}

// TestRunEndsWhileCheckHangs checks that the daemon can stop while the engine or a file system does not respond.
func TestRunEndsWhileCheckHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hangs := make(chan struct{})
		b := newLogBound(logBoundOptions{
			Dir: logs(t, "a_1/c/0.log"), Max: 1, Log: slog.New(slog.DiscardHandler),
			Running: func(context.Context) (map[string]bool, error) {
				<-hangs
				return nil, errors.New("too late")
			},
		})
		begun := time.Now()
		b.Run(ctx)
		if took := time.Since(begun); took != time.Minute+logCleanup {
			t.Errorf("ended after %v", took)
		}
		close(hangs)
	})
}

// TestLimitInMemory: a limit for disks does not let logs fill the memory.
func TestLimitInMemory(t *testing.T) {
	dir := t.TempDir()
	standard, err := newLogBound(logBoundOptions{Dir: dir}).Limit()
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]int64{0: standard, 1 << 20: 1 << 20, 1 << 50: standard} {
		if got, err := newLogBound(logBoundOptions{Dir: dir, Max: limit, Memory: true}).Limit(); got != want || err != nil {
			t.Errorf("with totalMaxSize %d: %d, %v; want %d", limit, got, err, want)
		}
	}
}
