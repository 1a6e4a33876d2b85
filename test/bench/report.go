package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report contains all results. Times are in milliseconds, memory in MiB.
type report struct {
	machine, programs string
	before, after     string // load

	program, monitor      int64 // bytes
	warm, onDemand, empty start
	turns                 []turn // Podstead first
	bare, steps           series // runc, in one command and in three
	crun, crunSteps       series // the same with crun
	podman                series // container lifetime
	own, ctr, pod         series
	restart, stop         series
	without, with         start // the pod network and a volume
	atOnce                series
	many                  usage
	idle, idleProbed      float64 // percent of a core
	idleBare              float64 // of the exchanges of idleProbed, in a program that does nothing else
	hundreds              hundreds
	asks                  struct{ exec, http, tcp, grpc asking }
	probed                probed
	fsyncs                waits
	flooded               flooded
}

// each returns the memory of one more pod.
func (u *usage) each() float64 { return (u.all.ours() - u.one.ours()) / (many - 1) }

// page returns the page of the documentation.
func (r *report) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks

Measure on your own host, as root:

    make bench    # writes docs/benchmarks.md

It waits until the host is quiet: a load average below 1. The figures are the results of one run on one host.

Host: %s. Load average %s before the run and %s after it.
Programs: %s.

`, r.machine, r.before, r.after, r.programs)
	r.peers(&b)
	r.ratios(&b)
	r.times(&b)
	r.probes(&b)
	r.sizes(&b)
	r.logs(&b)
	return b.String()
}

func (r *report) times(b *strings.Builder) {
	b.WriteString("## Times\n\nIn milliseconds.\n\n| | median | min | max | n |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range []struct {
		what string
		s    *series
	}{
		{"file to first process: `podstead run`, with a running daemon", &r.warm.process},
		{"file to first output, with a running daemon", &r.warm.output},
		{"file to first process, daemon started on demand", &r.onDemand.process},
		{"file to first output, daemon started on demand", &r.onDemand.output},
		{"file to first process, with empty directories, including the image import", &r.empty.process},
		{"file to first output, with empty directories, including the image import", &r.empty.output},
		{"file to first process: network mode `none`, no volume", &r.without.process},
		{"file to first process: network mode `bridge`, config map volume", &r.with.process},
		{"container lifetime: bare `runc run`", &r.bare},
		{"container lifetime: bare `runc create`, `start`, `delete`", &r.steps},
		{"container lifetime: bare `crun run`", &r.crun},
		{"container lifetime: bare `crun create`, `start`, `delete`", &r.crunSteps},
		{"container lifetime: Podstead, as in a restart", &r.own},
		{"container lifetime: `podman run --rm`, with runc", &r.podman},
		{"container lifetime: Debian's `ctr run --rm`", &r.ctr},
		{"pod lifetime: `podstead run`, including the removal", &r.pod},
		{"`kill -9` of the process to the first restart", &r.restart},
		{"stop to exit of a process that handles SIGTERM", &r.stop},
		{"20 pods started together, until all are ready", &r.atOnce},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row.what, row.s.cells())
	}
	b.WriteString(`
A pod has one busybox container, and a sandbox with network, IPC and UTS namespaces. First process: the container's shell has written to a
FIFO. First output: the first byte on the command's standard output. A container lifetime is create, start, ` + "`true`" +
		`, wait, delete; its
variants were measured alternately. Bare runc ran Podstead's own specification on an existing root file system, ctr a simpler one without
seccomp. In one command runc is a single process. A container manager, such as Podstead's monitor and containerd's shim, needs the three commands.

`)
}

// ratios compares with other programs of the same run.
func (r *report) ratios(b *strings.Builder) {
	runc, crun, podman := r.turn(withRunc), r.turn(withCrun), r.turn("Podman")
	b.WriteString("## Ratios\n\nMedians of Podstead divided by those of other programs, measured alternately in the same run.\n\n| | " +
		"ratio |\n| --- | --- |\n")
	for _, row := range []struct {
		what       string
		own, other *series
	}{
		{"container lifetime, to bare `runc run`", &r.own, &r.bare},
		{"container lifetime, to `runc create`, `start`, `delete`", &r.own, &r.steps},
		{"container lifetime, to bare `crun run`", &r.own, &r.crun},
		{"container lifetime, to `crun create`, `start`, `delete`", &r.own, &r.crunSteps},
		{"container lifetime, to `podman run --rm`", &r.own, &r.podman},
		{"file to first output with runc, to `podman run` on the host network", &runc.first, &podman.first},
		{"file to first output with crun, to `podman run` on the host network", &crun.first, &podman.first},
		{"`kill -9` to restarted with runc, to Podman", &runc.restart, &podman.restart},
		{"`kill -9` to restarted with crun, to Podman", &crun.restart, &podman.restart},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row.what, ratio(row.own.median(), row.other.median()))
	}
	b.WriteString("\nA program that is not installed, or does not work on this host, is not measured. crun 1.8 refuses a host with both " +
		"versions of cgroups.\n\n")
}

func (r *report) probes(b *strings.Builder) {
	b.WriteString("## Probes\n\nIn milliseconds per probe.\n\n")
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
With 20 pods and one probe per second each, CPU time of daemon, engine, monitor and containers together, minus that of the same pods without
probes: exec %s ms with runc and %s ms with crun, HTTP %s ms, TCP %s ms, gRPC %s ms per probe. The minimum on this host, measured in the same run: the five system calls
of one bare HTTP exchange, at the same rate from a program that does nothing else, take %s ms.

The table is for probes one after the other, in batches of 10 commands and of 200 others. The CPU time is the daemon's, for a command also
that of the monitor, the OCI runtime and the command. That of the server is not included.

`, number(r.probed.exec), number(r.probed.execCrun), number(r.probed.http), number(r.probed.tcp), number(r.probed.grpc),
		number(r.probed.bare))
}

func (r *report) sizes(b *strings.Builder) {
	b.WriteString("## Memory\n\nProportional set size in MiB, 5 seconds after the last start or deletion.\n\n")
	b.WriteString("| | daemon | monitor | processes in containers | each additional pod (monitor and daemon) |\n| --- | --- | --- | --- " +
		"| --- |\n")
	for _, row := range []struct {
		what string
		m    memory
		each string
	}{
		{"no pod", r.many.none, ""},
		{"1 pod", r.many.one, ""},
		{"20 pods", r.many.all, number(r.many.each())},
		{"all deleted", r.many.after, ""},
	} {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", row.what, number(row.m.daemon), number(row.m.monitor), number(row.m.containers),
			row.each)
	}
	fmt.Fprintf(b, "\n## Other\n\n| | |\n| --- | --- |\n| idle CPU with 20 pods, of one core | %.2f%% |\n", r.idle)
	fmt.Fprintf(b,
		"| idle CPU with 20 pods and an HTTP probe every 10 s, of one core | %.2f%% |\n| the same exchanges, in a program that does "+
			"nothing else | %.2f%% |\n",
		r.idleProbed, r.idleBare)
	h := &r.hundreds
	fmt.Fprintf(b,
		"| 200 pods, until all are ready | %s s |\n| 200 pods, daemon (PSS) | %s MiB |\n| 200 pods, descriptors of the daemon | %d |\n",
		number(h.ready), number(h.daemon), h.descriptors)
	fmt.Fprintf(b,
		"| 200 pods, `kill -9` of the daemon until all are ready again | %.2f s |\n| 200 pods, `podstead get` | %s ms |\n| 200 pods, "+
			"idle CPU of one core | %.2f%% |\n",
		h.again, number(h.get.median()), h.idle)
	fmt.Fprintf(b, "| size of `podstead` | %.1f MiB |\n| size of `podstead-monitor` | %.1f MiB |\n", mib(r.program), mib(r.monitor))
	if r.fsyncs.lives == 0 {
		b.WriteString("| calls that wait for the disk | not measured: strace is not installed |\n\n")
		return
	}
	w := &r.fsyncs
	fmt.Fprintf(b, "| system calls that wait for the disk, in the lifetime of a pod | %.1f |\n", w.all())
	for _, what := range slices.Sorted(maps.Keys(w.alive)) {
		fmt.Fprintf(b, "| of these: %s | %.1f |\n", what, w.each(w.alive[what]))
	}
	fmt.Fprintf(b, "| of the garbage collection after the removal of one pod | %.1f |\n", w.each(w.after))
	b.WriteString("\n")
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// turn returns what was measured for a contender. It is empty if nothing was.
func (r *report) turn(name string) *turn {
	for i := range r.turns {
		if r.turns[i].name == name {
			return &r.turns[i]
		}
	}
	return &turn{name: name}
}

// peers compares with other programs. The figures of kubelets were measured once, on another host.
func (r *report) peers(b *strings.Builder) {
	b.WriteString(`## Comparison

Medians. Podstead, Podman and dockerd were measured in turns in this run, with busybox and everything local. Containers of Podman and
dockerd are on the network of the host and have runc, pods of Podstead have a network of their own. Times of Podman and dockerd include
their command. Podman is ready when the first process runs, Podstead when it knows that and its clients see it. The figures of the kubelet
1.36.2 were **measured elsewhere**: medians on another host of this kind, standalone with static pods.

`)
	names := []string{withRunc, withCrun, "Podman", "dockerd"}
	b.WriteString("| | " + strings.Join(names, " | ") + " | kubelet, containerd 1.6.20 | kubelet, containerd 2.4.2 |\n| --- |" +
		strings.Repeat(" --- |", len(names)+2) + "\n")
	for _, row := range []struct {
		what, unit string
		value      func(*turn) float64
		elsewhere  string
	}{
		{"file or command to first output", "ms", func(t *turn) float64 { return t.first.median() }, "128 to 142 ms | 135 to 177 ms"},
		{"`kill -9` to restarted", "ms", func(t *turn) float64 { return t.restart.median() }, "598 to 844 ms | 689 ms"},
		{"stop to exit", "ms", func(t *turn) float64 { return t.stop.median() }, "8 to 10 ms | 8 to 9 ms"},
		{
			"20 started together, until all are ready", "s", func(t *turn) float64 { return t.atOnce.median() / 1000 },
			"1.6 to 3.4 s | 1.8 to 3.6 s",
		},
		{"daemons without pods (PSS)", "MiB", func(t *turn) float64 { return t.none }, "105 MiB | 115 MiB"},
		{"20 pods with one container (PSS, total)", "MiB", func(t *turn) float64 { return t.all }, "198 MiB | 263 MiB"},
	} {
		b.WriteString("| " + row.what)
		for _, name := range names {
			t := r.turn(name)
			switch v := row.value(t); {
			case t.all == 0:
				b.WriteString(" | not measured")
			case v == 0:
				b.WriteString(" | none")
			default:
				fmt.Fprintf(b, " | %s %s", number(v), row.unit)
			}
		}
		b.WriteString(" | " + row.elsewhere + " |\n")
	}
	b.WriteString("\nWhat costs the most, and what was tried: [Lean](design/lean.md).\n\n")
}
