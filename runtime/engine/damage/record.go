package damage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// containerd's records of time and of encoded messages (core/metadata/buckets.go). It fails to list all records of a kind if it
// cannot decode one of them.
var (
	timeKeys    = []string{"createdat", "updatedat", "expireat"}
	messageKeys = []string{"spec", "options"}
)

// CheckRecord is a [Visit] that checks records of containerd's metadata.
func CheckRecord(buckets []string, key, value []byte) error {
	if len(buckets) < 4 || slices.Contains(buckets, "labels") { // version, namespace, kind, name
		return nil
	}
	switch {
	case slices.Contains(timeKeys, string(key)):
		var t time.Time
		return t.UnmarshalBinary(value)
	case slices.Contains(messageKeys, string(key)) && len(value) > 0:
		var message anypb.Any
		if err := proto.Unmarshal(value, &message); err != nil {
			return err
		}
		if string(key) == "spec" && len(message.GetValue()) > 0 && !json.Valid(message.GetValue()) {
			return fmt.Errorf("%s is not JSON", message.GetTypeUrl())
		}
	}
	return nil
}

// CheckState checks the state of a container of runc (state.json in a directory named by the ID of the container).
func CheckState(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return &Error{path, ReasonEmpty, "file is empty"}
	}
	var state struct {
		ID      string            `json:"id"`
		PID     int               `json:"init_process_pid"`
		Start   uint64            `json:"init_process_start"`
		Cgroups map[string]string `json:"cgroup_paths"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return &Error{path, ReasonContent, err.Error()}
	}
	if id := filepath.Base(filepath.Dir(path)); state.ID != id || state.PID <= 0 || state.Start == 0 || len(state.Cgroups) == 0 {
		return &Error{path, ReasonContent, "not the state of container " + id}
	}
	return nil
}
