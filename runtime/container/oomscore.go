package container

import (
	"context"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/client"
)

// completeScore sets the OOM score 0 of a created container: crun 1.8 takes it for none, and the container has that of the shim. Only a
// host without CAP_SYS_RESOURCE has such containers.
func (s *Service) completeScore(ctx context.Context, c client.Container, pid int) error {
	if s.config.Host.Resource {
		return nil
	}
	spec, err := c.Spec(ctx)
	if err != nil {
		return err
	}
	if score := spec.Process.OOMScoreAdj; score == nil || *score != 0 {
		return nil
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("0"), 0o600); err != nil {
		return fmt.Errorf("set OOM score of container: %w", err)
	}
	return nil
}
