package container

import (
	"context"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/core/containers"
	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/oci"
)

// withUser sets the user of a container, looked up in the image's /etc/passwd and /etc/group. Errors name the user and the image.
func withUser(u oci.User, image string) containerdoci.SpecOpts {
	opts := []containerdoci.SpecOpts{containerdoci.WithUser(u.Primary)}
	if u.Member != "" {
		opts = append(opts, containerdoci.WithAdditionalGIDs(u.Member))
	}
	set := containerdoci.Compose(append(opts, withGroups(u.Groups))...)
	return func(ctx context.Context, client containerdoci.Client, c *containers.Container, s *specs.Spec) error {
		if err := set(ctx, client, c, s); err != nil {
			return fmt.Errorf("find user %q in /etc/passwd and /etc/group of image %q: %w", u.Primary, image, err)
		}
		return nil
	}
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
