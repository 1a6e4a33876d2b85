package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
)

func absolute(v any) error {
	if p, ok := v.(*string); ok && !filepath.IsAbs(*p) {
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

// socketPath allows an empty value, which stands for the default in the runtime directory.
func socketPath(v any) error {
	if isEmptyString(v) {
		return nil
	}
	return absolute(v)
}

func socketOrNone(v any) error {
	if p, ok := v.(*string); ok && *p == NoSocket {
		return nil
	}
	return socketPath(v)
}

func subnets(v any) error {
	p, ok := v.(*string)
	if !ok {
		return nil
	}
	_, err := network.ParseSubnets(*p)
	return err
}

func program(v any) error {
	p, ok := v.(*string)
	if ok && (*p == "" || strings.Contains(*p, "/") && !filepath.IsAbs(*p)) {
		return errors.New("must be the name of a program or an absolute path")
	}
	return nil
}

func duration(v any) error {
	if p, ok := v.(*Duration); ok && p.Duration() <= 0 {
		return errors.New(`must be a duration greater than 0, such as "60s" or "5m"`)
	}
	return nil
}

func logRate(v any) error {
	if p, ok := v.(*string); ok {
		_, err := spec.ParseLogRate(*p)
		return err
	}
	return nil
}

func durationOrZero(v any) error {
	if p, ok := v.(*Duration); ok {
		if d, err := time.ParseDuration(string(*p)); err != nil || d < 0 {
			return errors.New(`must be a duration, such as "2m" or "720h"`)
		}
	}
	return nil
}

func oneOf(values ...string) func(any) error {
	return func(v any) error {
		if p, ok := v.(*string); ok && !slices.Contains(values, *p) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// each checks every value of a list.
func each(check func(string) error) func(any) error {
	return func(v any) error {
		p, ok := v.(*[]string)
		if !ok {
			return nil
		}
		var errs []error
		for _, value := range *p {
			errs = append(errs, check(value))
		}
		return errors.Join(errs...)
	}
}

func between(low, high int64) func(any) error {
	return func(v any) error {
		if p, ok := v.(*int64); ok && (*p < low || *p > high) {
			return fmt.Errorf("must be between %d and %d, inclusive", low, high)
		}
		return nil
	}
}

func atLeast(bytes int64) func(any) error {
	return func(v any) error {
		if p, ok := v.(*spec.Quantity); ok && p.Value() < bytes {
			return fmt.Errorf("must be at least %d bytes", bytes)
		}
		return nil
	}
}

// zeroOr allows a quantity of 0, and applies the check to others.
func zeroOr(check func(any) error) func(any) error {
	return func(v any) error {
		if p, ok := v.(*spec.Quantity); ok && p.IsZero() {
			return nil
		}
		return check(v)
	}
}
