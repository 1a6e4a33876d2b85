package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// TestContainerUsageTable: the runs of a container are one row, and those of a pod that has finished another one.
func TestContainerUsageTable(t *testing.T) {
	got := ContainerUsageTable([]api.ContainerUsage{
		{Pod: "web", Container: "app", ID: "1", Size: 4096, Active: true},
		{Pod: "web", Container: "app", ID: "2", Size: 1024},
		{Pod: "web", Container: "app", ID: "3", Size: 4096, Active: true},
		{Pod: "web", Container: "log", ID: "4", Size: 1024, Active: true},
	})
	want := [][]string{
		{"POD", "CONTAINER", "WRITABLE LAYERS", "ACTIVE"},
		{"web", "app", "8Ki", "true"},
		{"web", "app", "1Ki", "false"},
		{"web", "log", "1Ki", "true"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
