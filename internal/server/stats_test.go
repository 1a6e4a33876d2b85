package server_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
)

// counted is a source of statistics that counts its calls.
type counted struct{ calls []string }

func (c *counted) Stats(_ context.Context, pods []supervisor.Snapshot) []api.PodStats {
	var list []api.PodStats
	for i := range pods {
		c.calls = append(c.calls, pods[i].Pod.Name)
		list = append(list,
			api.PodStats{
				PodRef: api.PodReference{Name: pods[i].Pod.Name, UID: pods[i].Facts.UID}, CPU: &api.CPUStats{UsageCoreNanoSeconds: 7},
			})
	}
	return list
}

// TestStats: only the pods of a request are measured, and none unless it is requested.
func TestStats(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	if s, err := d.client.Stats(t.Context()); err != nil || s.Pods == nil || len(s.Pods) != 0 {
		t.Errorf("without pods and without a source: %+v, %v", s, err)
	}
	d.closeServer()
	source := &counted{}
	d.stats = source
	d.serve(t, "second")
	uids := map[string]string{}
	for _, name := range []string{"b", "a", "c"} {
		uids[name] = d.create(t, file(name, app("main", "sleep 1000"))).Metadata.UID
	}
	for _, test := range []struct{ names, want string }{{"", "a b c"}, {"c", "c"}, {"c a", "a c"}, {"a a", "a"}} {
		source.calls = nil
		s, err := d.client.Stats(t.Context(), strings.Fields(test.names)...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range s.Pods {
			got = append(got, p.PodRef.Name)
			if p.PodRef.UID != uids[p.PodRef.Name] || p.CPU == nil || p.CPU.UsageCoreNanoSeconds != 7 {
				t.Errorf("%+v", p)
			}
		}
		if strings.Join(got, " ") != test.want || !slices.Equal(got, source.calls) {
			t.Errorf("pods %q: %q, measured %q", test.names, got, source.calls)
		}
	}
	source.calls = nil
	_, err := d.client.Stats(t.Context(), "a", "none")
	if !isStatus(err, http.StatusNotFound) || err.Error() != `no such pod "none"` {
		t.Errorf("error %v", err)
	}
	if len(source.calls) > 0 {
		t.Errorf("measured %q", source.calls)
	}
}
