package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestEffectiveGrace(t *testing.T) {
	seconds := func(s float64) *time.Duration {
		d := time.Duration(s * float64(time.Second))
		return &d
	}
	for _, row := range []struct {
		own     spec.Seconds
		request *time.Duration
		want    lifecycle.Grace
	}{
		{30, nil, lifecycle.Grace{Period: 30 * time.Second}},
		{0, nil, lifecycle.Grace{Period: time.Second}},
		{30, seconds(5), lifecycle.Grace{Period: 5 * time.Second}},
		{30, seconds(50), lifecycle.Grace{Period: 50 * time.Second}},
		{30, seconds(0.5), lifecycle.Grace{Period: time.Second}},
		{30, seconds(-7), lifecycle.Grace{Period: time.Second}},
		{30, seconds(0), lifecycle.Grace{Force: true}},
	} {
		if got := lifecycle.EffectiveGrace(&spec.Pod{TerminationGracePeriodSeconds: row.own}, row.request); got != row.want {
			t.Errorf("pod %v, request %v: %+v, want %+v", row.own, row.request, got, row.want)
		}
	}
}
