package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

// The values of policy.requests.
const (
	enforceRequests = "enforce"
	ignoreRequests  = "ignore"
)

// systemReserved checks a list of reserved resources.
func systemReserved(list []string) error {
	seen := map[string]bool{}
	for _, text := range list {
		name, _, err := parseReserved(text)
		if err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%q: %s is listed twice", text, name)
		}
		seen[name] = true
	}
	return nil
}

// reserved returns a list that [systemReserved] has checked.
func reserved(list []string) spec.ResourceList {
	if len(list) == 0 {
		return nil
	}
	resources := spec.ResourceList{}
	for _, text := range list {
		if name, q, err := parseReserved(text); err == nil {
			resources[name] = q
		}
	}
	return resources
}

// parseReserved parses a resource and its amount.
func parseReserved(text string) (name string, q spec.Quantity, err error) {
	names := []string{spec.ResourceCPU, spec.ResourceMemory, spec.ResourceEphemeralStorage}
	name, amount, ok := strings.Cut(text, "=")
	name, amount = strings.TrimSpace(name), strings.TrimSpace(amount)
	if !ok || !slices.Contains(names, name) {
		return "", q, fmt.Errorf("%q: must be a resource (%s) and its amount, such as memory=1Gi", text, strings.Join(names, ", "))
	}
	q, err = resource.ParseQuantity(amount)
	if err != nil || q.Sign() < 0 {
		return "", q, fmt.Errorf("%q: %q must be a quantity of at least 0, such as 500m or 1Gi", text, amount)
	}
	return name, q, nil
}
