package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/internal/rig"
)

// asking is the cost of one probe.
type asking struct{ cpu, wall series }

// serveVariable makes this program the server of the probes, in a process of its own, so that its CPU time is not counted.
const serveVariable = "PODSTEAD_BENCH_SERVE"

// serve serves HTTP and gRPC, prints the ports, and exits at the end of standard input.
func serve() error {
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	rpc, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "ok")
		})}
		_ = s.Serve(web)
	}()
	go func() {
		s := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(s, health.NewServer())
		_ = s.Serve(rpc)
	}()
	fmt.Println(web.Addr().(*net.TCPAddr).Port, rpc.Addr().(*net.TCPAddr).Port)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startServer starts serve in a process of its own.
func startServer(ctx context.Context) (web, rpc int32, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), serveVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if _, err := fmt.Fscan(out, &web, &rpc); err != nil {
		return 0, 0, nil, errors.Join(err, stop())
	}
	return web, rpc, stop, nil
}

// probes measures the cost of each kind of probe: wall time, and CPU time of the daemon. For a command also that of the monitor, the OCI
// runtime and the command.
func (b *bench) probes(ctx context.Context, r *report) error {
	return b.within(ctx, func(rg *rig.Rig) error {
		own, err := b.newOwn(ctx, rg)
		if err != nil {
			return err
		}
		web, rpc, stop, err := startServer(ctx)
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		p := probes.New(own, func() lifecycle.Instant { return lifecycle.Instant{Boot: "bench"} }, probes.Options{})
		for _, kind := range []struct {
			cost  *asking
			n     int
			probe spec.Probe
		}{
			{&r.asks.exec, 10, spec.Probe{Exec: &spec.ExecAction{Command: []string{"true"}}}},
			{&r.asks.http, 200, spec.Probe{HTTPGet: &spec.HTTPGetAction{Port: spec.Port{Number: web}}}},
			{&r.asks.tcp, 200, spec.Probe{TCPSocket: &spec.TCPSocketAction{Port: spec.Port{Number: web}}}},
			{&r.asks.grpc, 200, spec.Probe{GRPC: &spec.GRPCAction{Port: rpc}}},
		} {
			kind.probe.TimeoutSeconds = 60
			for i := range b.times(10) + 1 {
				if err == nil {
					err = ask(ctx, rg, p, &kind.probe, kind.n, kind.cost, i > 0) // the first batch warms up caches
				}
			}
		}
		return errors.Join(err, stop(), own.close(ctx))
	})
}

// ask runs n probes, one after the other.
func ask(ctx context.Context, rg *rig.Rig, p *probes.Prober, probe *spec.Probe, n int, cost *asking, counts bool) error {
	target := probes.Target{
		UID: uid, Address: "127.0.0.1", Ref: lifecycle.Ref{Container: "sleeper", Round: 1, Attempt: 1}, Container: &spec.Container{},
	}
	before, err := cpuTime(rg)
	if err != nil {
		return err
	}
	began := time.Now()
	for range n {
		if got := p.Run(ctx, target, probe); got.Outcome != lifecycle.ProbeSuccess {
			return fmt.Errorf("probe result %s: %s", got.Outcome, got.Message)
		}
	}
	took := time.Since(began)
	after, err := cpuTime(rg)
	if err != nil {
		return err
	}
	if counts {
		cost.wall.took(took / time.Duration(n))
		cost.cpu.took((after - before) / time.Duration(n))
	}
	return nil
}

// cpuTime returns the CPU time of this process, and of the rig's monitor with its exited children.
func cpuTime(rg *rig.Rig) (time.Duration, error) {
	total, err := ownTime()
	if err != nil {
		return 0, err
	}
	all, err := rg.Processes()
	if err != nil {
		return 0, err
	}
	for _, process := range all {
		if !isMonitor(process) {
			continue
		}
		used, err := ticksOf(process.PID)
		if err != nil {
			return 0, err
		}
		total += time.Duration(used) * 10 * time.Millisecond // length of a tick on all architectures that we build for
	}
	return total, nil
}

// ticksOf returns the CPU time of a process and its exited children in ticks, from fields 14 to 17 of proc(5).
func ticksOf(pid int) (total int, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range fields[11:15] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
