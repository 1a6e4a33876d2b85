package shim

import (
	"context"
	"path/filepath"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/log"
	"github.com/containerd/typeurl/v2"
)

// prepareFilter gives a container the seccomp filter that an earlier one was created with. The returned function keeps that of this
// container if there was none; it is called when the container was created. Errors are logged: crun compiles the filter then.
func prepareFilter(ctx context.Context, r *api.CreateTaskRequest) (created func()) {
	none := func() {}
	warn := func(err error) {
		log.G(ctx).WithError(err).WithField("container", r.ID).Warn("seccomp filters cannot be kept: they are compiled for each container")
	}
	if r.Options.GetValue() == nil {
		return none
	}
	value, err := typeurl.UnmarshalAny(r.Options)
	if err != nil {
		return none // the inner service reports it
	}
	o, ok := value.(*options.Options)
	ns, found := namespaces.Namespace(ctx)
	if !ok || o.Root == "" || o.BinaryName == "" || !found || filepath.Base(o.BinaryName) == "runc" { // runc leaves no filter
		return none
	}
	keep, err := filterStore{Dir: filepath.Join(o.Root, ".filters")}.Use(r.Bundle, o.BinaryName)
	if err != nil {
		warn(err)
	}
	if keep == nil {
		return none
	}
	return func() {
		if err := keep(filepath.Join(o.Root, ns, r.ID, "seccomp.bpf")); err != nil {
			warn(err)
		}
	}
}
