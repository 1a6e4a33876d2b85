package engine

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/log"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/shim"
)

func TestOptionsCheck(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shim")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		opt  Options
		want string
	}{
		{"good", Options{Root: "/r", State: "/s", ShimPath: program, MonitorPath: program}, ""},
		{"longest state", Options{Root: "/r", State: "/" + strings.Repeat("s", 38), ShimPath: program, MonitorPath: program}, ""},
		{
			"state too long",
			Options{Root: "/r", State: "/" + strings.Repeat("s", 41), ShimPath: program, MonitorPath: program},
			"must be 3 characters shorter",
		},
		{"no root", Options{State: "/s", ShimPath: program, MonitorPath: program}, `root "" must be an absolute path`},
		{"relative state", Options{Root: "/r", State: "s", ShimPath: program, MonitorPath: program}, `state "s" must be an absolute path`},
		{"same directory", Options{Root: "/r/", State: "/r", ShimPath: program, MonitorPath: program}, "must be different directories"},
		{"no shim", Options{Root: "/r", State: "/s", ShimPath: program + "x", MonitorPath: program}, "no such file"},
		{"shim is no program", Options{Root: "/r", State: "/s", ShimPath: plain, MonitorPath: program}, "is not an executable file"},
		{"no monitor", Options{Root: "/r", State: "/s", ShimPath: program}, `monitor "" must be an absolute path`},
		{
			"shim is a directory",
			Options{Root: "/r", State: "/s", ShimPath: filepath.Dir(plain), MonitorPath: program},
			"is not an executable file",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := errors.Join(tt.opt.check(), tt.opt.checkPrograms())
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, []byte("123456789 of an older process\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = takeLock(path)
	if inUse, ok := errors.AsType[*ErrInUse](err); !ok || inUse.Pid != os.Getpid() || inUse.Path != path {
		t.Errorf("second lock: got %v", err)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	l, err = takeLock(path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := l.release(); err != nil {
		t.Error(err)
	}
}

// A child that a killed holder has just forked keeps the lock until its exec.
func TestLockOfDeadProcess(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lock")
	child, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(dead.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() {
		<-time.After(100 * time.Millisecond)
		released <- child.release()
	}()
	l, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-released, l.release()); err != nil {
		t.Error(err)
	}
}

func TestScanBundles(t *testing.T) {
	state := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(state, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(state, shim.Name)
	write(shim.Name, "")
	tasks, sandboxes := taskPlugin+"/"+Namespace, sandboxPlugin+"/"+Namespace
	write(tasks+"/ended/exit.json", `{"Timestamp":"2026-01-02T03:04:05Z","Pid":7,"Status":9}`)
	write(tasks+"/runs/shim-binary-path", "/gone")
	write(tasks+"/runs/init.pid", "7")
	write(tasks+"/torn/exit.json", `{"Timest`)
	write(tasks+"/torn/init.pid", "7")
	write(tasks+"/never-created/config.json", "{}")
	write(tasks+"/.deleted/exit.json", `{"Timestamp":"2026-01-02T03:04:05Z","Pid":7,"Status":9}`)
	write(tasks+"/a-file", "")
	write(tasks+"/oom/exit.json", `{"Timestamp":"2026-01-02T03:04:05Z","Pid":8,"Status":137}`)
	write(tasks+"/oom/oom-killed", "")
	write("io.containerd.runtime.v2.task/other/ended/exit.json", `{"Timestamp":"2026-01-02T03:04:05Z","Pid":7,"Status":9}`)
	write(sandboxes+"/pod/shim-binary-path", program)
	write("podstead-1.9", "") // cleaned up after shims in earlier versions, also with another name
	write(tasks+"/oom/shim-binary-path", filepath.Join(state, "podstead-1.9"))

	if _, err := scanBundles(state, ""); !errors.Is(err, shim.ErrMissing) {
		t.Errorf("without the program for shims: %v", err)
	}
	got, err := scanBundles(state, "/new/shim")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*Exit{
		"ended": {Status: 9, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, "runs": nil, "torn": nil,
		"oom": {Status: 137, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), OOMKilled: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for path, want := range map[string]string{
		tasks + "/runs/shim-binary-path":     "/new/shim",
		tasks + "/ended/shim-binary-path":    "/new/shim",
		tasks + "/oom/shim-binary-path":      "/new/shim",
		sandboxes + "/pod/shim-binary-path":  program,
		tasks + "/.deleted/shim-binary-path": "",
	} {
		b, err := os.ReadFile(filepath.Join(state, path))
		if string(b) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %q, %v, want %q", path, b, err, want)
		}
	}

	// containerd deletes a bundle without a shim.
	if err := os.RemoveAll(filepath.Join(state, tasks, "torn")); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	e := &Engine{opt: Options{State: state}}
	missed, err := e.missedExits(got, now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Exit{"ended": *want["ended"], "oom": *want["oom"], "torn": {Status: 137, At: now}}, missed); diff != "" {
		t.Errorf("missed exits (-want +got)\n%s", diff)
	}
}

func TestProcessWait(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- p.wait(ctx) }()
	cancel()
	if err := <-waited; !errors.Is(err, ctx.Err()) {
		t.Errorf("cancelled: got %v", err)
	}
	p2, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p2.close()
	go func() { waited <- p2.wait(t.Context()) }()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("ended: got %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	p2.kill() // it has exited
	killed := exec.Command("cat")
	if _, err := killed.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	p3, err := openProcess(killed.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p3.close()
	p3.kill()
	if err := killed.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("killed: got %v", err)
	}
	gone, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.wait(t.Context()); err != nil {
		t.Errorf("reaped: got %v", err)
	}
}

func TestRedirectLog(t *testing.T) {
	var out bytes.Buffer
	redirectLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	log.L.Info("not this")
	log.L.WithError(errors.New("a cause")).Warn("a warning")
	log.L.WithField("id", "x").Error("an error")
	log.L.Error("copy shim log")
	want := "level=WARN msg=\"a warning\" component=containerd error=\"a cause\"\n" +
		"level=ERROR msg=\"an error\" component=containerd id=x\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestLastMessage reads what an OCI runtime has written, as JSON or as text.
func TestLastMessage(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n": "",
		`{"msg":"first"}` + "\n" + `{"level":"error","msg":"no such process\n","time":"t"}` + "\n": "no such process",
		"flag provided but not defined\n": "flag provided but not defined",
		`{"msg":"cut of`:                  `{"msg":"cut of`,
	} {
		if got := lastMessage([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
