package container

import (
	"context"
	"slices"

	"github.com/containerd/containerd/v2/core/containers"
	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/oci"
)

// withUser sets the user of a container, looked up in the image's /etc/passwd and /etc/group.
func withUser(u oci.User) containerdoci.SpecOpts {
	opts := []containerdoci.SpecOpts{containerdoci.WithUser(u.Primary)}
	if u.Member != "" {
		opts = append(opts, containerdoci.WithAdditionalGIDs(u.Member))
	}
	return containerdoci.Compose(append(opts, withGroups(u.Groups))...)
}

// withGroups adds supplementary groups.
func withGroups(groups []uint32) containerdoci.SpecOpts {
	return func(_ context.Context, _ containerdoci.Client, _ *containers.Container, s *specs.Spec) error {
		all := append(s.Process.User.AdditionalGids, groups...)
		slices.Sort(all)
		s.Process.User.AdditionalGids = slices.Compact(all)
		return nil
	}
}
