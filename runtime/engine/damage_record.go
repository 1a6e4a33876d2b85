package engine

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

// checkRecord is a [visitRecord] that checks records of containerd's metadata.
func checkRecord(buckets []string, key, value []byte) error {
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

// checkState checks the state of a container in a directory named by its ID: the file state.json of runc, or status of crun.
func checkState(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return &damageError{path, reasonEmpty, "file is empty"}
	}
	id, valid := filepath.Base(filepath.Dir(path)), isRuncState
	if filepath.Base(path) == "status" {
		valid = isCrunStatus
	}
	ok, err := valid(text, id)
	if err != nil {
		return &damageError{path, reasonContent, err.Error()}
	}
	if !ok {
		return &damageError{path, reasonContent, "not the state of container " + id}
	}
	return nil
}

func isRuncState(text []byte, id string) (bool, error) {
	var state struct {
		ID      string            `json:"id"`
		PID     int               `json:"init_process_pid"`
		Start   uint64            `json:"init_process_start"`
		Cgroups map[string]string `json:"cgroup_paths"`
	}
	err := json.Unmarshal(text, &state)
	return state.ID == id && state.PID > 0 && state.Start > 0 && len(state.Cgroups) > 0, err
}

// isCrunStatus knows the container by its bundle: the status has no ID. The path of the cgroup is empty without root.
func isCrunStatus(text []byte, id string) (bool, error) {
	var status struct {
		PID    int    `json:"pid"`
		Bundle string `json:"bundle"`
	}
	err := json.Unmarshal(text, &status)
	return filepath.Base(status.Bundle) == id && status.PID > 0, err
}
