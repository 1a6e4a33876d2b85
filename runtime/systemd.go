package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// unitPrefix begins the names of all our units. A dash in the name of a slice makes it a child: podstead.slice is the
// parent of every pod's.
const unitPrefix = "podstead"

func slice(uid string) string { return unitPrefix + "-" + strings.ReplaceAll(uid, "-", "_") + ".slice" }

// startScope moves a shim into a scope of its own in the slice of its pod. It may be there already.
func startScope(ctx context.Context, uid string, sandbox, pid int) error {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	name := fmt.Sprintf("%s-shim-%s-%d.scope", unitPrefix, strings.ReplaceAll(uid, "-", "_"), sandbox)
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, name, "fail", []dbus.Property{
		dbus.PropDescription("Podstead pod " + uid),
		dbus.PropSlice(slice(uid)),
		dbus.PropPids(uint32(pid)),
		{Name: "CollectMode", Value: godbus.MakeVariant("inactive-or-failed")},
	}, done)
	if isUnitError(err, "UnitExists") {
		return nil
	}
	return awaitJob(ctx, "start "+name, err, done)
}

// stopSlice stops the slice of a pod, and with it whatever is in it.
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

// awaitJob waits for the result of a job that systemd was asked for, or has refused with err.
func awaitJob(ctx context.Context, what string, err error, done <-chan string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: systemd says %q", what, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}
