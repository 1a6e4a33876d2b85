package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Seconds is a span of time in seconds; fractions are allowed.
type Seconds float64

// Duration rounds to the nearest nanosecond. What does not fit becomes the
// longest duration there is.
func (s Seconds) Duration() time.Duration {
	ns := math.Round(float64(s) * float64(time.Second))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// Quantity is a Kubernetes quantity such as "250m" or "64Mi". Compare two with
// Cmp, not with ==: the same amount has several representations in memory.
type Quantity = resource.Quantity

// Port is a number, or the name of a port of the same container. In JSON it is
// a number or a string, as in Kubernetes.
type Port struct {
	Number int32
	Name   string // empty where Number is set
}

// String is the port as the file wrote it.
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
