package container

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/journald"
	"github.com/podstead/podstead/runtime/ocibundle"
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
	driver := driverIn(s.logDriver(n.pod), n.sandbox.Label(record.LabelJournald) == "true")
	if err := CheckDriver(driver, dirs.Run); err != nil {
		return "", err
	}
	if driver != spec.LogFile {
		dirs = dirs.InMemory()
	}
	return dirs.ContainerLog(n.uid, n.pod.Name, n.action.Container, n.action.Restarts), nil
}

// driverIn returns the driver of the containers of a sandbox. A shim of an earlier version does not copy logs to journald: they would only
// be in memory, so they are in files.
func driverIn(driver spec.LogDriver, shimCopies bool) spec.LogDriver {
	if driver == spec.LogJournald && !shimCopies {
		return spec.LogFile
	}
	return driver
}

func (s *Service) logDriver(pod *spec.Pod) spec.LogDriver {
	return cmp.Or(pod.LogDriverOf(), s.config.Logs.Driver)
}

// CheckDriver returns an error if the host cannot have logs with a driver: the runtime directory must be in memory, and journald must run.
func CheckDriver(driver spec.LogDriver, runDir string) error {
	var err error
	switch driver {
	case spec.LogFile:
	case spec.LogJournald:
		err = errors.Join(journald.Check(), checkMemory(runDir))
	case spec.LogMemory:
		err = checkMemory(runDir)
	}
	if err != nil {
		return fmt.Errorf("log driver %s: %w", driver, err)
	}
	return nil
}

// checkMemory returns an error if a directory is not in memory.
func checkMemory(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if kind := int64(stat.Type); kind != unix.TMPFS_MAGIC && kind != unix.RAMFS_MAGIC { //nolint:unconvert // 32 bits wide elsewhere
		return fmt.Errorf("the runtime directory %s is not in memory (tmpfs)", dir)
	}
	return nil
}

// output returns the output of a new process.
func (s *Service) output(pod *spec.Pod, id string, labels map[string]string) ocibundle.Output {
	o := ocibundle.Output{
		Log: labels[record.LabelLog], Options: s.logOptions(pod, labels), Stdin: ocibundle.Stdin(labels[record.LabelStdin]),
	}
	if s.logDriver(pod) == spec.LogJournald && s.inMemory(labels) {
		name := labels[record.LabelContainer]
		o.Journal = &crilog.JournalFields{
			ID: id, Pod: pod.Name, UID: labels[record.LabelUID], Container: name, Restarts: labels[record.LabelRestarts],
		}
		if c := pod.Container(name); c != nil {
			o.Journal.Image = c.Image
		}
	}
	return o
}

// inMemory reports whether the log of a container is in memory.
func (s *Service) inMemory(labels map[string]string) bool {
	return strings.HasPrefix(labels[record.LabelLog], s.config.Dirs.MemoryLogs()+"/")
}

// logOptions returns the limits of a container's log.
func (s *Service) logOptions(pod *spec.Pod, labels map[string]string) crilog.Options {
	o := s.config.Logs.File
	if s.inMemory(labels) {
		o = s.config.Logs.Memory
	}
	rate, own := pod.LogRateOf(labels[record.LabelContainer])
	if !own {
		rate = s.config.Logs.Rate
	}
	o.Rate = crilog.Rate(rate)
	return o
}
