package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// LogDriver is where the log of a container is written to.
type LogDriver string

// The log drivers.
const (
	LogFile   LogDriver = "file"   // files in the directory for container logs
	LogMemory LogDriver = "memory" // files in memory, in the directory for runtime state
	// LogJournald is LogMemory with a copy in the journal.
	LogJournald LogDriver = "journald"
)

// LogDrivers returns the names of all log drivers.
func LogDrivers() []string {
	return []string{string(LogFile), string(LogMemory), string(LogJournald)}
}

// Annotations that replace settings of the daemon for the logs of a pod. A rate limit for one container takes precedence over that for all
// containers of the pod. The value off is no limit.
const (
	LogDriverAnnotation    = "podstead.io/log-driver"
	LogRateAnnotation      = "podstead.io/log-rate-limit"
	logRateContainerPrefix = "log-rate-limit.podstead.io/"
	noLogRate              = "off"
)

// LogRate is the maximum rate of a log. At most one field is set, the zero value is no limit.
type LogRate struct {
	Lines, Bytes int64 // per second
}

// ParseLogRate parses a rate, such as "100 lines/s" or "64Ki bytes/s". The values "" and "off" are no limit.
func ParseLogRate(text string) (r LogRate, err error) {
	if text == "" || text == noLogRate {
		return r, nil
	}
	number, isLines := strings.CutSuffix(text, " lines/s")
	if isLines {
		r.Lines, err = strconv.ParseInt(number, 10, 64)
	} else {
		var q resource.Quantity
		size, isBytes := strings.CutSuffix(text, " bytes/s")
		if q, err = resource.ParseQuantity(size); err == nil && isBytes {
			r.Bytes = q.Value()
		}
	}
	if err != nil || r.Lines < 0 || r.Bytes < 0 || r == (LogRate{}) {
		return LogRate{}, errors.New(`must be off or a rate greater than 0, such as "100 lines/s" or "64Ki bytes/s"`)
	}
	return r, nil
}

// LogRateOf returns the rate limit of a container's log, and whether the pod sets it.
func (p *Pod) LogRateOf(container string) (LogRate, bool) {
	text, ok := p.Annotations[logRateContainerPrefix+container]
	if !ok {
		text, ok = p.Annotations[LogRateAnnotation]
	}
	if !ok {
		return LogRate{}, false
	}
	r, err := ParseLogRate(text)
	return r, err == nil
}

// LogDriverOf returns the log driver of the pod's containers, empty for that of the daemon.
func (p *Pod) LogDriverOf() LogDriver { return LogDriver(p.Annotations[LogDriverAnnotation]) }

// DefaultLogDriver sets the log driver of the pod if its file does not set one.
func (p *Pod) DefaultLogDriver(driver LogDriver) {
	if driver == "" || p.LogDriverOf() != "" {
		return
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[LogDriverAnnotation] = string(driver)
}

// logAnnotations validates the annotations for logs.
func (v *validator) logAnnotations() {
	p := v.pod
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		at, value := entry{&p.Annotations, key}, p.Annotations[key]
		container, ofContainer := strings.CutPrefix(key, logRateContainerPrefix)
		switch {
		case key == LogDriverAnnotation && !slices.Contains(LogDrivers(), value):
			v.bad(at, "Unsupported value: %s: supported values: %s", quote(value), strings.Join(LogDrivers(), ", "))
		case ofContainer && p.Container(container) == nil:
			v.bad(at, "Not found: container %s", quote(container))
		case ofContainer || key == LogRateAnnotation:
			if _, err := ParseLogRate(value); err != nil {
				v.bad(at, "Invalid value: %s: %s", quote(value), fmt.Sprint(err))
			}
		}
	}
}
