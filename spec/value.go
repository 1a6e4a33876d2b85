package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Seconds is a duration in seconds; fractions are allowed.
type Seconds float64

// Duration rounds to the nearest nanosecond. Values out of range become the
// maximum duration.
func (s Seconds) Duration() time.Duration {
	ns := math.Round(float64(s) * float64(time.Second))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// Quantity is a Kubernetes quantity such as "250m" or "64Mi". Compare with Cmp,
// not with ==: equal amounts can have different representations.
type Quantity = resource.Quantity

// Port is a port number or the name of a port of the same container. In JSON it
// is a number or a string (intstr.IntOrString in Kubernetes).
type Port struct {
	Number int32
	Name   string // empty if Number is set
}

// String returns the number or the name.
func (p Port) String() string {
	if p.Name != "" {
		return p.Name
	}
	return strconv.Itoa(int(p.Number))
}

// MarshalJSON writes a number or a string.
func (p Port) MarshalJSON() ([]byte, error) {
	if p.Name != "" {
		return json.Marshal(p.Name)
	}
	return json.Marshal(p.Number)
}

// UnmarshalJSON reads a number or a string.
func (p *Port) UnmarshalJSON(data []byte) error {
	*p = Port{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &p.Name)
	}
	if err := json.Unmarshal(data, &p.Number); err != nil {
		return fmt.Errorf("decode port: %w", err)
	}
	return nil
}
