package container

import (
	"cmp"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/crilog/lograte"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

// Logs are the settings for the logs of all containers. A pod can replace the driver and the rate.
type Logs struct {
	Driver       spec.LogDriver
	Rate         spec.LogRate
	File, Memory crilog.Options // by driver, without the rate
}

// logPath returns the path of the log of a new container.
func (s *Service) logPath(n *creation) (string, error) {
	dirs := s.config.Dirs
	if cmp.Or(n.pod.LogDriverOf(), s.config.Logs.Driver) == spec.LogMemory {
		if err := CheckMemory(dirs.Run); err != nil {
			return "", err
		}
		dirs = dirs.InMemory()
	}
	return dirs.ContainerLog(n.uid, n.pod.Name, n.action.Container, n.action.Restarts), nil
}

// CheckMemory returns an error if a directory, for logs with driver memory, is not in memory.
func CheckMemory(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("log driver memory: statfs %s: %w", dir, err)
	}
	if kind := int64(stat.Type); kind != unix.TMPFS_MAGIC && kind != unix.RAMFS_MAGIC { //nolint:unconvert // 32 bits wide elsewhere
		return fmt.Errorf("log driver memory: the runtime directory %s is not in memory (tmpfs)", dir)
	}
	return nil
}

// logOptions returns the limits of a container's log.
func (s *Service) logOptions(pod *spec.Pod, labels map[string]string) crilog.Options {
	o := s.config.Logs.File
	if strings.HasPrefix(labels[record.LabelLog], s.config.Dirs.MemoryLogs()+"/") {
		o = s.config.Logs.Memory
	}
	rate, own := pod.LogRateOf(labels[record.LabelContainer])
	if !own {
		rate = s.config.Logs.Rate
	}
	o.Rate = lograte.Rate(rate)
	return o
}
