package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report is everything that was measured. Times are in milliseconds, memory in MiB.
type report struct {
	machine, programs string
	before, after     string // load

	program, shim         int64 // bytes
	warm, onDemand, empty start
	bare, steps           series // of runc alone, in one command and in three
	own, ctr, pod         series
	restart, stop         series
	without, with         start // the pod network and a volume
	atOnce                series
	small, large          usage
	idle                  float64
	asks                  struct{ exec, http, tcp, grpc asking }
	probed                probed
	fsyncRuns             int
	fsyncCalls            map[string]int // by program and file
}

// overhead is what a life of ours costs beside another.
func (r *report) overhead(beside *series) float64 { return r.own.median() - beside.median() }

// each is the memory of one more pod.
func (u *usage) each() float64 { return (u.all.ours() - u.one.ours()) / (many - 1) }

// page is the page of the documentation.
func (r *report) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks

Measured by `+"`make bench`"+`, which writes this page: figures are of one run on one machine, and are what came out.

Machine: %s. Load average %s before and %s after: other work shared it. Programs: %s.

`, r.machine, r.before, r.after, r.programs)
	r.goals(&b)
	r.times(&b)
	r.probes(&b)
	r.sizes(&b)
	r.peers(&b)
	return b.String()
}

func (r *report) goals(b *strings.Builder) {
	b.WriteString("## Goals\n\n| goal | measured | |\n| --- | --- | --- |\n")
	for _, g := range []struct {
		goal     string
		measured float64
		limit    float64
		unit     string
	}{
		{"own overhead over bare `runc run` below 25 ms", r.overhead(&r.bare), 25, "ms"},
		{"the same over `runc create`, `start`, `delete`", r.overhead(&r.steps), 25, "ms"},
		{"pod network and one volume add less than 10 ms to the first process", r.with.process.median() - r.without.process.median(), 10, "ms"},
		{"daemon without pods below 40 MiB PSS", r.small.none.daemon, 40, "MiB"},
		{"each further one-container pod below 6 MiB PSS (small shim)", r.small.each(), 6, "MiB"},
		{"an HTTP probe below 0.5 ms of CPU, one after the other", r.asks.http.cpu.median(), 0.5, "ms"},
		{"the same in daily life, see below", r.probed.http, 0.5, "ms"},
	} {
		verdict := "met"
		if g.measured >= g.limit {
			verdict = "**not met**"
		}
		fmt.Fprintf(b, "| %s | %s %s | %s |\n", g.goal, number(g.measured), g.unit, verdict)
	}
	b.WriteString("\n")
}

func (r *report) times(b *strings.Builder) {
	b.WriteString("## Times\n\nIn milliseconds.\n\n| | median | min | max | n |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range []struct {
		what string
		s    *series
	}{
		{"file to first process: `podstead run`, a daemon runs", &r.warm.process},
		{"file to first output, a daemon runs", &r.warm.output},
		{"file to first process, the daemon is started on demand", &r.onDemand.process},
		{"file to first output, the daemon is started on demand", &r.onDemand.output},
		{"file to first process, from an empty root, image imported", &r.empty.process},
		{"file to first output, from an empty root, image imported", &r.empty.output},
		{"file to first process: network mode none, no config volume", &r.without.process},
		{"file to first process: the pod network, and a config map as a volume", &r.with.process},
		{"life of a container: bare `runc run`", &r.bare},
		{"life of a container: bare `runc create`, `start`, `delete`", &r.steps},
		{"life of a container: ours, as in a restart", &r.own},
		{"life of a container: Debian's `ctr run --rm`", &r.ctr},
		{"life of a pod: `podstead run`, until everything of it is gone", &r.pod},
		{"`kill -9` of the process to its first restart", &r.restart},
		{"stop to exit of a process that handles TERM", &r.stop},
		{"20 pods at once, all ready", &r.atOnce},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row.what, row.s.cells())
	}
	b.WriteString(`
A pod has one container of busybox, and a sandbox of its own with network, IPC and UTS namespaces. First process: the container's shell
has written to a FIFO. First output: the first byte on the command's standard output. The life of a container is create, start, ` + "`true`" + `, wait,
delete. The kinds of it were measured in turn. Bare runc ran our own specification on a root file system that was there already, ctr a simpler
one without seccomp. In one command runc is one process; who keeps containers needs its three commands, as our shim and containerd's do.

`)
}

func (r *report) probes(b *strings.Builder) {
	b.WriteString("## Probes\n\nIn milliseconds, for one answer.\n\n")
	b.WriteString("| | CPU median | min | max | wall median | min | max | batches |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range []struct {
		what string
		a    *asking
	}{
		{"exec, `true`", &r.asks.exec}, {"httpGet", &r.asks.http}, {"tcpSocket", &r.asks.tcp}, {"grpc", &r.asks.grpc},
	} {
		fmt.Fprintf(b, "| %s |", row.what)
		for _, s := range []*series{&row.a.cpu, &row.a.wall} {
			all := append(s.sorted(), 0)
			fmt.Fprintf(b, " %.2f | %.2f | %.2f |", s.median(), all[0], all[max(0, len(all)-2)])
		}
		fmt.Fprintf(b, " %d |\n", len(row.a.cpu.samples))
	}
	fmt.Fprintf(b, `
In daily life, 20 pods with one probe a second each, CPU time of daemon, engine, shims and containers together beside the same pods without: exec %s ms, HTTP
%s ms, TCP %s ms, gRPC %s ms for each probe. The floor of this machine, in the same run: the five system calls of one bare HTTP exchange, at the same pace from
a program that does nothing else, take %s ms.

One after the other, in batches of 10 commands and 200 others. The CPU time is the daemon's, and for a command that of the shim, the OCI runtime and the
command too, not that of the server that answers.

`, number(r.probed.exec), number(r.probed.http), number(r.probed.tcp), number(r.probed.grpc), number(r.probed.bare))
}

func (r *report) sizes(b *strings.Builder) {
	b.WriteString("## Memory\n\nProportional set size in MiB, 5 seconds after the last change.\n\n")
	b.WriteString("| | daemon | shims | containers' own processes | each further pod (shim and daemon) |\n| --- | --- | --- | --- | --- |\n")
	for _, kind := range []struct {
		name string
		u    *usage
	}{{"small shim", &r.small}, {"`podstead` as its own shim", &r.large}} {
		if kind.u.none.daemon == 0 {
			fmt.Fprintf(b, "| %s: not measured | | | | |\n", kind.name)
			continue
		}
		for _, row := range []struct {
			what string
			m    memory
			each string
		}{
			{"no pod", kind.u.none, ""}, {"1 pod", kind.u.one, ""}, {"20 pods", kind.u.all, number(kind.u.each())}, {"all are gone", kind.u.after, ""},
		} {
			fmt.Fprintf(b, "| %s, %s | %s | %s | %s | %s |\n", kind.name, row.what, number(row.m.daemon), number(row.m.shims), number(row.m.containers), row.each)
		}
	}
	fmt.Fprintf(b, "\n## Other\n\n| | |\n| --- | --- |\n| idle CPU with 20 pods, of one core | %.2f%% |\n", r.idle)
	fmt.Fprintf(b, "| size of `podstead` | %.1f MiB |\n| size of `containerd-shim-podstead-v1` | %.1f MiB |\n", mib(r.program), mib(r.shim))
	if r.fsyncRuns == 0 {
		b.WriteString("| calls that wait for the disk | not measured: there is no strace |\n\n")
		return
	}
	total := 0
	for _, n := range r.fsyncCalls {
		total += n
	}
	each := func(n int) float64 { return float64(n) / float64(r.fsyncRuns) }
	fmt.Fprintf(b, "| calls that wait for the disk, in the whole life of a pod | %.1f |\n", each(total))
	for _, what := range slices.Sorted(maps.Keys(r.fsyncCalls)) {
		fmt.Fprintf(b, "| of these: %s | %.1f |\n", what, each(r.fsyncCalls[what]))
	}
	b.WriteString("\n")
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// peers compares with others, whose figures were taken once and elsewhere.
func (r *report) peers(b *strings.Builder) {
	fmt.Fprintf(b, `## Beside others

The other columns were **measured elsewhere**: medians on another machine of this kind (2 shared cores), busybox, everything local, kubelet
1.36.2 standalone with static pods, Podman 4.3.1, dockerd 20.10. Ours has one volume in the first row.

| | Podstead | goal | Podman | dockerd | kubelet, containerd 1.6.20 | kubelet, containerd 2.4.2 |
| --- | --- | --- | --- | --- | --- | --- |
| file or command to first process | %s ms | 60 ms | 112 ms (kube play: 173) | 252 to 293 ms | 128 to 142 ms (with a volume 425 to 475) | 135 to 177 ms (with a volume 444 to 494) |
| `+"`kill -9`"+` to first restart | %s ms | 50 ms | 79 to 91 ms | 325 to 369 ms | 598 to 844 ms | 689 ms |
| stop to exit | %s ms | 5 ms | 33 ms | 38 to 41 ms | 8 to 10 ms | 8 to 9 ms |
| 20 pods at once, all ready | %.1f s | 1.2 s | 6.5 s | | 1.6 to 3.4 s | 1.8 to 3.6 s |
| daemons, no pods (PSS) | %s MiB | 38 MiB | 0 | 94 to 104 MiB | 105 MiB | 115 MiB |
| 20 one-container pods (PSS, all of it) | %s MiB | 140 MiB | 16.5 MiB | 178 MiB | 198 MiB | 263 MiB |
| idle CPU with 20 pods, of one core | %.2f%% | 0.3%% | 0 (nothing supervises) | 1.0%% | 2.3 to 3.2%% | 6.9%% |
`,
		number(r.warm.process.median()), number(r.restart.median()), number(r.stop.median()), r.atOnce.median()/1000,
		number(r.small.none.daemon), number(r.small.all.ours()+r.small.all.containers), r.idle)
}
