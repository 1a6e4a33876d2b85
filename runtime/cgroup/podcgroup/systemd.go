package podcgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/podstead/podstead/runtime/cgroup"
)

// unitPrefix is the prefix of all units. A dash in the name of a slice makes it a child: podstead.slice is the parent of the
// slices of all pods.
const unitPrefix = "podstead"

func slice(uid string) string { return unitPrefix + "-" + strings.ReplaceAll(uid, "-", "_") + ".slice" }

// startSlice starts the slice of a pod, or sets the limits of the existing one.
func startSlice(ctx context.Context, uid string, l cgroup.Limits, unified bool) error {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	limits := sliceLimits(l, unified)
	all := append([]dbus.Property{
		dbus.PropDescription("Podstead pod " + uid),
		{Name: "DefaultDependencies", Value: godbus.MakeVariant(false)},
	}, limits...)
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, slice(uid), "fail", all, done)
	if !isUnitError(err, "UnitExists") {
		return awaitJob(ctx, "start "+slice(uid), err, done)
	}
	if err := conn.SetUnitPropertiesContext(ctx, slice(uid), true, limits...); err != nil {
		return fmt.Errorf("set limits of %s: %w", slice(uid), err)
	}
	return nil
}

// unlimited is systemd's "infinity".
const unlimited = math.MaxUint64

// sliceLimits returns the properties of a slice with these limits. A fraction of a percent of a processor is rounded up, because
// systemd would round it down.
func sliceLimits(l cgroup.Limits, unified bool) []dbus.Property {
	property := func(name string, value any) dbus.Property {
		return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
	}
	number := func(n int64) uint64 {
		if n <= 0 {
			return unlimited
		}
		return uint64(n)
	}
	quota := uint64(unlimited)
	if l.Quota > 0 {
		const second, percent = 1_000_000, 10_000
		quota = uint64(l.Quota) * (second / cgroup.Period)
		quota = (quota + percent - 1) / percent * percent
	}
	list := []dbus.Property{
		property("CPUAccounting", true), property("MemoryAccounting", true), property("TasksAccounting", true),
		property("CPUQuotaPerSecUSec", quota), property("TasksMax", number(l.Pids)),
	}
	if unified {
		return append(list, property("CPUWeight", cgroup.PodWeight(l.Shares)), property("MemoryMax", number(l.Memory)))
	}
	return append(list, property("CPUShares", max(l.Shares, cgroup.MinShares)), property("MemoryLimit", number(l.Memory)))
}

// protection returns the properties of the monitor's scope that protect its memory.
func protection(unified bool) []dbus.Property {
	if !unified {
		return nil
	}
	return []dbus.Property{{Name: "MemoryMin", Value: godbus.MakeVariant(uint64(MonitorMemory))}}
}

// startScope moves processes that outlive the daemon to a scope outside of the slices of pods, see [Groups.Shim]. The scope may already
// exist.
func startScope(ctx context.Context, name, description string, more []dbus.Property, pids ...int) error {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	list := make([]uint32, len(pids))
	for i, pid := range pids {
		list[i] = uint32(pid)
	}
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, name, "fail", append([]dbus.Property{
		dbus.PropDescription(description),
		dbus.PropSlice(unitPrefix + ".slice"),
		dbus.PropPids(list...),
		{Name: "CollectMode", Value: godbus.MakeVariant("inactive-or-failed")},
		// Without it systemd stops the scope at the shutdown of the host, before the daemon has stopped the pod.
		{Name: "DefaultDependencies", Value: godbus.MakeVariant(false)},
	}, more...), done)
	if isUnitError(err, "UnitExists") {
		return nil
	}
	return awaitJob(ctx, "start "+name, err, done)
}

// stopSlice stops the slice of a pod and everything in it.
func stopSlice(ctx context.Context, uid string) error {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	done := make(chan string, 1)
	_, err = conn.StopUnitContext(ctx, slice(uid), "replace", done)
	if isUnitError(err, "NoSuchUnit") {
		return nil
	}
	return awaitJob(ctx, "stop "+slice(uid), err, done)
}

func isUnitError(err error, name string) bool {
	e, ok := errors.AsType[godbus.Error](err)
	return ok && e.Name == "org.freedesktop.systemd1."+name
}

// awaitJob waits for the result of a job of systemd. err is the error of the request that created the job.
func awaitJob(ctx context.Context, what string, err error, done <-chan string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: systemd reports %q", what, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}
