package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tags.cncf.io/container-device-interface/pkg/parser"

	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
)

func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("must be an absolute path")
	}
	return nil
}

func absolutePath(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q: must be an absolute path", path)
	}
	return nil
}

// allowedDevice allows an absolute path, a CDI device, and the kind of some.
func allowedDevice(entry string) error {
	name := entry
	if !strings.Contains(entry, "=") {
		name += "=all"
	}
	if filepath.IsAbs(entry) || parser.IsQualifiedName(name) {
		return nil
	}
	return fmt.Errorf("%q: must be an absolute path, or a CDI device such as nvidia.com/gpu or nvidia.com/gpu=0", entry)
}

// socketOrNone allows an empty value, which stands for the default beside the other socket.
func socketOrNone(path string) error {
	if path == NoSocket {
		return nil
	}
	return emptyOr(absolute)(path)
}

func subnets(text string) error {
	_, err := network.ParseSubnets(text)
	return err
}

func program(name string) error {
	if name == "" || strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return errors.New("must be the name of a program or an absolute path")
	}
	return nil
}

func duration(d Duration) error {
	if d.Duration() <= 0 {
		return errors.New(`must be a duration greater than 0, such as "60s" or "5m"`)
	}
	return nil
}

func logRate(text string) error {
	_, err := spec.ParseLogRate(text)
	return err
}

func durationOrZero(text Duration) error {
	if d, err := time.ParseDuration(string(text)); err != nil || d < 0 {
		return errors.New(`must be a duration, such as "2m" or "720h"`)
	}
	return nil
}

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

func each(check func(string) error) func([]string) error {
	return func(values []string) error {
		var errs []error
		for _, value := range values {
			errs = append(errs, check(value))
		}
		return errors.Join(errs...)
	}
}

func between(low, high int64) func(int64) error {
	return func(n int64) error {
		if n < low || n > high {
			return fmt.Errorf("must be between %d and %d, inclusive", low, high)
		}
		return nil
	}
}

func atLeast(bytes int64) func(spec.Quantity) error {
	return func(q spec.Quantity) error {
		if q.Value() < bytes {
			return fmt.Errorf("must be at least %d bytes", bytes)
		}
		return nil
	}
}

// zeroOr allows a quantity of 0, and applies the check to others.
func zeroOr(check func(spec.Quantity) error) func(spec.Quantity) error {
	return func(q spec.Quantity) error {
		if q.IsZero() {
			return nil
		}
		return check(q)
	}
}

// emptyOr allows an empty text, and applies the check to others.
func emptyOr(check func(string) error) func(string) error {
	return func(text string) error {
		if text == "" {
			return nil
		}
		return check(text)
	}
}
