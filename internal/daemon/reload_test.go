package daemon_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/server"
)

// service receives what a daemon notifies systemd of.
func service(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return l
}

// receive returns the next notification but those of the status of pods.
func receive(t *testing.T, l *net.UnixConn) string {
	t.Helper()
	text := make([]byte, 256)
	_ = l.SetReadDeadline(time.Now().Add(testTimeout))
	for {
		n, err := l.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text[:n]), "STATUS=") {
			return string(text[:n])
		}
	}
}

// TestReload checks that SIGHUP applies what can be applied, reports what cannot and the errors of the file, and notifies systemd.
func TestReload(t *testing.T) {
	systemd := service(t)
	h := newHost(t)
	file := filepath.Join(filepath.Dir(h.config.Socket), "podstead.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[engine]\nx = 1\ny = 1\n")
	dirs := map[string]string{
		"socket": h.config.Socket, "state-dir": h.config.StateDir, "run-dir": h.config.RunDir, "log-dir": h.config.LogDir,
		"pods-dir": h.config.Pods.Dir,
	}
	load := func() (*config.Config, error) {
		return config.Load(config.Sources{File: file, Flag: func(name string) (string, bool) { v, set := dirs[name]; return v, set }})
	}
	_, invalid := load()
	write("")
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	policy := c.Policy.Admission()
	ctx, cancel := context.WithCancel(t.Context())
	var bandwidth atomic.Int64
	var classes atomic.Value
	start := func(ctx context.Context, c *config.Config, log *slog.Logger) (daemon.Runtime, error) {
		rt, err := h.start(ctx, c, log)
		return limitedRuntime{rt, &bandwidth, &classes}, err
	}
	reload, ready, result := make(chan os.Signal, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		result <- daemon.Run(ctx, daemon.Options{
			Config: c, Start: start, Version: api.Version{Policy: server.PolicyOf(&policy)}, Log: slog.New(slog.DiscardHandler),
			Ready:  func() { close(ready) },
			Reload: reload, Load: load, Invalid: invalid,
		})
	}()
	awaitReady(t, ready, result)
	if e := lastEvent(t, h); e.Kind != api.EventConfigInvalid || strings.Contains(e.Message, `\n`) ||
		!strings.Contains(e.Message, file+":2:1: engine.x: unknown field; "+file+":3:1: engine.y: unknown field") {
		t.Errorf("event at the start with an earlier configuration: %+v", e)
	}
	if _, err := os.Stat(filepath.Join(h.config.StateDir, config.ValidName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("copy of the valid configuration: %v, want none", err)
	}
	if got := receive(t, systemd); got != "READY=1" {
		t.Fatalf("systemd was notified of %q", got)
	}
	reloaded := func(text string) string {
		t.Helper()
		write(text)
		reload <- syscall.SIGHUP
		if got := receive(t, systemd); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
			t.Errorf("systemd was notified of %q", got)
		}
		if got := receive(t, systemd); got != "READY=1" {
			t.Errorf("systemd was notified of %q", got)
		}
		var messages []string
		for e, err := range h.client.Events(t.Context(), &client.EventQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == api.EventConfigReloaded || e.Kind == api.EventConfigRestartRequired || e.Kind == api.EventConfigInvalid {
				messages = append(messages, e.Message)
			}
		}
		return strings.Join(messages, "; ")
	}
	for _, step := range []struct{ text, want, level string }{
		{
			"[engine]\nruntime = \"crun\"\n[pods]\nfinishedPodTTL = \"1h\"\n[policy]\npodSecurity = \"baseline\"\n",
			"Configuration reloaded, changed pods.finishedPodTTL, policy.podSecurity; Configuration changes need a restart of the " +
				"daemon: engine.runtime",
			"baseline",
		},
		{
			"[policy]\npodSecurity = \"restrictd\"\n", "Configuration is invalid, the last valid one stays in effect: " + file +
				":2:15: policy.podSecurity: must be one of privileged, baseline, restricted", "baseline",
		},
		{"[pods]\nfinishedPodTTL = \"1h\"\n[policy]\npodSecurity = \"baseline\"\n", "Configuration reloaded, nothing changed", "baseline"},
		{
			"[pods]\nfinishedPodTTL = \"1h\"\n[policy]\npodSecurity = \"baseline\"\n[[images.verify]]\nprefix = \"docker.io\"\ntype = " +
				"\"accept\"\n",
			"Configuration reloaded, changed images.verify", "baseline",
		},
		{
			"[[images.verify]]\nprefix = \"docker.io\"\nkeys = [\"/none.pub\"]\n",
			"Configuration is invalid, the last valid one stays in effect: " + file +
				":3:9: images.verify[0].keys[0]: \"/none.pub\": no such file or directory", "baseline",
		},
		{
			"[policy]\npodSecurity = \"restricted\"\n",
			"Configuration reloaded, changed pods.finishedPodTTL, policy.podSecurity, images.verify", "restricted",
		},
	} {
		if got := reloaded(step.text); !strings.HasSuffix(got, step.want) {
			t.Errorf("events %q, want %q at the end", got, step.want)
		}
		v, err := h.client.Version(t.Context())
		if err != nil || v.Policy == nil || v.Policy.PodSecurity != step.level {
			t.Errorf("policy %+v, %v, want %s", v.Policy, err, step.level)
		}
	}
	if got := reloaded("[images]\nmaxBandwidth = \"64Ki\"\n"); !strings.Contains(got, "images.maxBandwidth") || bandwidth.Load() != 64<<10 {
		t.Errorf("events %q, bandwidth %d", got, bandwidth.Load())
	}
	got := reloaded("[[engine.runtimeClasses]]\nname = \"a\"\nruntime = \"crun\"\n")
	if !strings.Contains(got, "engine.runtimeClasses") || !reflect.DeepEqual(classes.Load(), map[string]string{"a": "crun"}) {
		t.Errorf("events %q, classes %v", got, classes.Load())
	}
	reloaded("[policy]\npodSecurity = \"restricted\"\n")
	if got := classes.Load(); !reflect.DeepEqual(got, map[string]string{}) {
		t.Errorf("classes %v after they were removed", got)
	}
	if got := bandwidth.Load(); got != 0 {
		t.Errorf("bandwidth %d without a limit", got)
	}
	text, err := os.ReadFile(filepath.Join(h.config.StateDir, config.ValidName))
	if err != nil || !strings.HasSuffix(string(text), "\n[policy]\npodSecurity = \"restricted\"\n") {
		t.Errorf("copy of the valid configuration: %v, %q", err, text)
	}
	if _, err := h.client.Create(t.Context(), web()); err == nil {
		t.Error("a pod that violates the new policy is accepted")
	}
	cancel()
	await(t, result)
}

// limitedRuntime records the bandwidth of pulls and the runtime classes.
type limitedRuntime struct {
	daemon.Runtime

	bandwidth *atomic.Int64
	classes   *atomic.Value
}

func (r limitedRuntime) SetPullBandwidth(n int64) { r.bandwidth.Store(n) }

func (r limitedRuntime) SetRuntimeClasses(programs map[string]string) { r.classes.Store(programs) }

// lastEvent returns the newest event of the host.
func lastEvent(t *testing.T, h *host) (last api.Event) {
	t.Helper()
	for e, err := range h.client.Events(t.Context(), &client.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	return last
}
