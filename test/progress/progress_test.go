package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// events are of a package with a test that fails, one that passes, and one that is skipped.
const events = `{"Action":"start","Package":"github.com/podstead/podstead/p"}
{"Action":"run","Package":"github.com/podstead/podstead/p","Test":"TestA"}
{"Action":"output","Package":"github.com/podstead/podstead/p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"github.com/podstead/podstead/p","Test":"TestA","Output":"    a_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"github.com/podstead/podstead/p","Test":"TestA","Elapsed":1.5}
{"Action":"run","Package":"github.com/podstead/podstead/p","Test":"TestB"}
{"Action":"pass","Package":"github.com/podstead/podstead/p","Test":"TestB/slow","Elapsed":2}
{"Action":"pass","Package":"github.com/podstead/podstead/p","Test":"TestB/quick","Elapsed":0.2}
{"Action":"pass","Package":"github.com/podstead/podstead/p","Test":"TestB","Elapsed":2.2}
{"Action":"run","Package":"github.com/podstead/podstead/p","Test":"FuzzC/seed#0"}
{"Action":"skip","Package":"github.com/podstead/podstead/p","Test":"FuzzC/seed#0","Elapsed":0}
{"Action":"skip","Package":"github.com/podstead/podstead/p","Test":"TestD","Elapsed":0}
not an event
{"Action":"output","Package":"github.com/podstead/podstead/p","Output":"FAIL\tgithub.com/podstead/podstead/p\t3.7s\n"}
{"Action":"fail","Package":"github.com/podstead/podstead/p","Elapsed":3.7}
`

// follow runs a command in a shell, as the suite "s", and returns the output and the directory of the records.
func follow(t *testing.T, script string, flags ...string) (out, dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	var b bytes.Buffer
	err = run(t.Context(), append(append([]string{"-suite", "s", "-dir", dir}, flags...), "--", "sh", "-c", script), &b)
	return b.String(), dir, err
}

func printed(t *testing.T, exit string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	return "cat " + file + "; exit " + exit
}

func TestRunFails(t *testing.T) {
	out, dir, err := follow(t, printed(t, "1"))
	if err == nil {
		t.Error("the exit code of the command was ignored")
	}
	for _, want := range []string{
		"--- FAIL: p TestA\n", "not an event\n",
		"FAIL\tgithub.com/podstead/podstead/p\t3.7s\n", "\n=== p TestA\n    a_test.go:3: got 1, want 2\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output %q lacks %q", out, want)
		}
	}
	if strings.Contains(out, "=== RUN") || strings.Contains(out, "TestB") {
		t.Errorf("output %q has noise", out)
	}
	failures, err := os.ReadFile(filepath.Join(dir, "s.failures"))
	if err != nil || !strings.Contains(string(failures), "got 1, want 2") {
		t.Errorf("file of failures: %q, %v", failures, err)
	}
	var summary bytes.Buffer
	if err := run(t.Context(), []string{"-dir", dir, "-summary", "s,none"}, &summary); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(summary.String()); strings.Join(got[:2], " ") != "s FAIL" || strings.Join(got[3:], " ") != "3 tests" {
		t.Errorf("summary %q", summary.String())
	}
}

func TestSkips(t *testing.T) {
	if _, _, err := follow(t, printed(t, "0")); err != nil {
		t.Error(err)
	}
	_, _, err := follow(t, printed(t, "0"), "-no-skips")
	if err == nil || err.Error() != "skipped tests are not allowed here: p TestD" {
		t.Errorf("error %v, want TestD without the seed", err)
	}
}

func TestPage(t *testing.T) {
	_, dir, err := follow(t, printed(t, "0"))
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := run(t.Context(), []string{"-dir", dir, "-page", page}, nil); err == nil {
		t.Error("no page: no error")
	}
	if err := os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-dir", dir, "-page", page}, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); !strings.Contains(got, "| `s` | `p` | 4 | TestB/slow 2, TestA 2 |\n") || strings.Contains(got, "old") ||
		!strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "after\n") {
		t.Errorf("page:\n%s", got)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"-suite", "s"}, {"--", "true"}} {
		if err := run(t.Context(), args, nil); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	ended := make(chan error)
	go func() {
		script := "trap 'exit 3' INT; touch " + started + "; while :; do sleep 0.05; done"
		ended <- run(ctx, []string{"-suite", "s", "-dir", t.TempDir(), "--", "sh", "-c", script}, &bytes.Buffer{})
	}()
	for {
		if _, err := os.Stat(started); err == nil {
			break
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
}

func TestWhere(t *testing.T) {
	r := newReport(nil, nil, false)
	now := r.start.Add(83 * time.Second)
	for _, name := range []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestE/part"} {
		r.running[key{"p", name}] = now.Add(-time.Minute)
	}
	r.running[key{"p", "TestLongest"}] = now.Add(-70 * time.Second)
	r.passed["p"], r.passed["q"] = 3, 4
	want := "1:23  7 tests passed, 0 failed, running p TestLongest 70s, p TestA 60s, p TestB 60s, p TestC 60s, and 2 more"
	if got := r.where(now); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLongLines(t *testing.T) {
	var lines []string
	readLines(strings.NewReader("short\n"+strings.Repeat("x", 3*maxLine)+"\nlast"), func(line string) { lines = append(lines, line) })
	if len(lines) != 3 || lines[0] != "short" || len(lines[1]) != maxLine || lines[2] != "last" {
		t.Errorf("%d lines", len(lines))
	}
}

func TestKind(t *testing.T) {
	for name, want := range map[string]string{
		"compile": "compiling", "qemu-system-x86": "virtual machine", "podstead": "podstead", "podstead.test": "tests",
		"containerd-shim": "podstead", "runc:[2:INIT]": "OCI runtime", "faults.test": "tests", "sh": "other",
	} {
		if got := kind(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestShares(t *testing.T) {
	p := newProcessors()
	p.sample()
	p.seconds = map[string]float64{"compiling": 3 * float64(runtime.NumCPU()), "tests": 0.5 * float64(runtime.NumCPU())}
	p.idle = idleSeconds() - float64(runtime.NumCPU())*5 // half of ten seconds
	want := regexp.MustCompile(`^waiting (49|50) %, compiling 30 %, short 1[56] %, tests 5 %$`)
	if got := p.shares(10 * time.Second); !want.MatchString(got) {
		t.Errorf("%q, want %v", got, want)
	}
}

// TestSample checks that the time of all threads of a process counts.
func TestSample(t *testing.T) {
	p := newProcessors()
	var stop atomic.Bool
	defer stop.Store(true)
	for range 2 {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	for p.seconds["tests"] < 0.2 {
		p.sample()
	}
}

func TestParseStat(t *testing.T) {
	id, name, seconds, ok := parseStat("12 (a) (b) S 1 1 1 0 -1 4194560 1 2 3 4 150 50 9 9 20 0 1 0 777 1 1 1")
	if id != "12 777" || name != "a) (b" || seconds != 2 || !ok {
		t.Errorf("%q, %q, %v, %t", id, name, seconds, ok)
	}
	if _, _, _, ok := parseStat("12 (a"); ok {
		t.Error("half a line is accepted")
	}
}

// TestCrash checks that the output of a program that ended before its tests is kept.
func TestCrash(t *testing.T) {
	out, dir, err := follow(t, `cat <<'E'
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"before\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 1s\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"goroutine 1\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t1s\n"}
{"Action":"fail","Package":"p","Elapsed":1}
E
exit 1`)
	if err == nil || !strings.Contains(out, "\n=== p\npanic: test timed out after 1s\ngoroutine 1\n") {
		t.Errorf("error %v, output %q", err, out)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "s.log")); err != nil || !strings.Contains(string(log), "before\npanic") {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestNoTests(t *testing.T) {
	if _, _, err := follow(t, "true", "-no-skips"); err == nil || err.Error() != "no test was run" {
		t.Errorf("error %v", err)
	}
}
