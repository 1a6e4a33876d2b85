package quadlet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

var (
	timePart  = lazyregexp.New(`^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]*)`)
	timeUnits = map[string]float64{
		"": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "µs": 1e-6,
		"m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
		"d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
	}
	errTime = errors.New("must be a time, such as 90, 5min or 1m30s")
)

// forever is the time that infinity stands for.
const forever = spec.Seconds(math.MaxInt32)

// parseTime reads a time of systemd.time(7) or of Go, in seconds.
func parseTime(text string) (spec.Seconds, error) {
	if text == "infinity" {
		return forever, nil
	}
	total := 0.0
	rest := text
	for strings.TrimSpace(rest) != "" {
		m := timePart.FindStringSubmatch(rest)
		if m == nil {
			return 0, errTime
		}
		factor, known := timeUnits[m[2]]
		number, err := strconv.ParseFloat(m[1], 64)
		if !known || err != nil {
			return 0, errTime
		}
		total += number * factor
		rest = rest[len(m[0]):]
	}
	if text == "" || total > float64(forever) {
		return 0, errTime
	}
	return spec.Seconds(math.Round(total*1000) / 1000), nil
}

// parseBool reads a boolean of systemd.
func parseBool(text string) (value, valid bool) {
	switch strings.ToLower(text) {
	case "1", "yes", "true", "on", "y", "t":
		return true, true
	case "0", "no", "false", "off", "n", "f":
		return false, true
	}
	return false, false
}

var size = lazyregexp.New(`^([0-9]+(?:\.[0-9]+)?)\s*([bBkKmMgGtT]?)([iI]?[bB])?$`)

// parseSize reads a size of Podman, whose units are powers of 1024.
func parseSize(text string) (spec.Quantity, error) {
	m := size.FindStringSubmatch(text)
	if m == nil {
		return spec.Quantity{}, errors.New("must be a size, such as 512m")
	}
	suffix := map[string]string{"k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}[strings.ToLower(m[2])]
	return parseQuantity(m[1] + suffix)
}

var (
	publish   = lazyregexp.New(`^(?:(?:(\[[^\]]*\]|[^:\[\]]*):)?([0-9-]*):)?([0-9]+(?:-[0-9]+)?)(?:/([a-zA-Z]+))?$`)
	errPorts  = errors.New("must be [[IP:][HOST]:]CONTAINER[/PROTOCOL] with numbers or ranges of ports")
	maxRanges = 256
)

// parsePorts reads a value of PublishPort=. Ports without one of the host have HostPort 0.
func parsePorts(text string) ([]spec.ContainerPort, error) {
	m := publish.FindStringSubmatch(text)
	if m == nil {
		return nil, errPorts
	}
	first, last, err := portRange(m[3])
	if err != nil {
		return nil, err
	}
	host, hostLast := int32(0), int32(0)
	if m[2] != "" {
		if host, hostLast, err = portRange(m[2]); err != nil {
			return nil, err
		}
		if hostLast-host != last-first {
			return nil, errors.New("the ranges of ports must have the same length")
		}
	}
	address := strings.Trim(m[1], "[]")
	if address == "0.0.0.0" {
		address = ""
	}
	protocol := spec.Protocol(strings.ToUpper(m[4]))
	if protocol == spec.ProtocolTCP {
		protocol = ""
	}
	var ports []spec.ContainerPort
	for i := range last - first + 1 {
		p := spec.ContainerPort{ContainerPort: first + i, HostIP: address, Protocol: protocol}
		if host > 0 {
			p.HostPort = host + i
		} else {
			p.HostIP = ""
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// portRange reads a port, or a range of at most maxRanges ports.
func portRange(text string) (first, last int32, err error) {
	from, to, is := strings.Cut(text, "-")
	if !is {
		to = from
	}
	a, errA := strconv.ParseUint(from, 10, 16)
	b, errB := strconv.ParseUint(to, 10, 16)
	switch {
	case errA != nil || errB != nil || a == 0 || b < a:
		return 0, 0, errPorts
	case b-a >= uint64(maxRanges):
		return 0, 0, fmt.Errorf("more than %d ports", maxRanges)
	}
	return int32(a), int32(b), nil
}

var notInNames = lazyregexp.New(`[^a-z0-9-]+`)

// podName returns the name that Kubernetes accepts for one of Podman or systemd: a DNS label.
func podName(name string) string {
	text := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.Trim(text[:min(len(text), 63)], "-")
}

// verbatim returns a text that Kubernetes takes as it is in commands and variables, where $(NAME) is a reference.
func verbatim(text string) string { return strings.ReplaceAll(text, "$(", "$$(") }

// parseQuantity reads a quantity of Kubernetes.
func parseQuantity(text string) (spec.Quantity, error) {
	return resource.ParseQuantity(text)
}
