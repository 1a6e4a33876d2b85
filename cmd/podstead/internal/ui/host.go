package ui

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/view"
)

// hostState is the state of the host.
type hostState struct {
	Name    string      `json:"name"`
	Version api.Version `json:"version"` // of the daemon
	CPUs    int         `json:"cpus"`
	Load    string      `json:"load"` // over 1, 5 and 15 minutes
	// Memory is in bytes.
	Memory struct {
		Total     uint64 `json:"total"`
		Available uint64 `json:"available"`
	} `json:"memory"`
	Disk      *api.Filesystem `json:"disk,omitempty"`
	DiskError string          `json:"diskError,omitempty"` // why Disk is missing
	Usage     [][]string      `json:"usage"`               // the table of podstead system df
	Pulls     []pull          `json:"pulls"`
	Updates   []waiting       `json:"updates"`
}

// pull is a pull or the unpacking of an image, or the import of an archive, that is in progress.
type pull struct {
	Pod       string       `json:"pod"`
	Container string       `json:"container"`
	What      string       `json:"what"` // for people
	Progress  api.Progress `json:"progress"`
}

// waiting is a pod whose file has another definition than what runs.
type waiting struct {
	Pod     string     `json:"pod"`
	Reason  api.Reason `json:"reason"`
	Message string     `json:"message"`
}

// host answers with the state of the host.
func (s *Server) host(w http.ResponseWriter, r *http.Request) {
	h, err := s.hostState(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, h)
}

func (s *Server) hostState(ctx context.Context) (h hostState, err error) {
	if h.Version, err = s.client.Version(ctx); err != nil {
		return h, err
	}
	h.Version.Policy = nil
	pods, err := s.client.RedactedPods(ctx)
	if err != nil {
		return h, err
	}
	h.CPUs = runtime.NumCPU()
	h.Name, _ = os.Hostname() // a host without a name has an empty one
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		h.Load = strings.Join(strings.Fields(string(text))[:3], ", ")
	}
	h.Memory.Total, h.Memory.Available = memory()
	h.Pulls, h.Updates = inProgress(pods.Items)
	u, err := s.client.DiskUsage(ctx)
	if err != nil { // the read-only socket does not have it
		h.DiskError = err.Error()
		return h, nil
	}
	h.Disk, h.Usage = &u.Filesystem, view.DiskUsageTable(&u)
	return h, nil
}

// inProgress returns the pulls in progress and the updates that wait, by name of the pod.
func inProgress(pods []api.Pod) ([]pull, []waiting) {
	pulls, updates := []pull{}, []waiting{}
	for i := range pods {
		p := &pods[i]
		for container, progress := range p.Status.Pulling {
			pulls = append(pulls, pull{p.Metadata.Name, container, view.Fetching(p, container, progress), progress})
		}
		for _, c := range p.Status.Conditions {
			if c.Type == api.FileAccepted && c.Status == "False" {
				updates = append(updates, waiting{p.Metadata.Name, c.Reason, c.Message})
			}
		}
	}
	order.Sort(pulls, func(a, b pull) int { return strings.Compare(a.Pod+"/"+a.Container, b.Pod+"/"+b.Container) })
	return pulls, updates
}

// memory returns the memory of the host, and what is available of it, in bytes; 0: not known.
func memory() (total, available uint64) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kibibytes, _ := strconv.ParseUint(fields[1], 10, 64) // 0: not known
		switch fields[0] {
		case "MemTotal:":
			total = kibibytes << 10
		case "MemAvailable:":
			available = kibibytes << 10
		}
	}
	return total, available
}
