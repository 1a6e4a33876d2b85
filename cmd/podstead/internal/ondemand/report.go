package ondemand

import (
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"
)

// reportFD is the file descriptor to which a daemon that was started on demand writes its report.
const reportFD = 3

// report is the result of the start of a daemon.
type report struct {
	Error  string   `json:"error,omitempty"` // empty: the daemon is ready
	Hints  []string `json:"hints,omitempty"`
	Status int      `json:"status,omitempty"`
}

// Reporter reports the result of the start to the command that started the daemon. The zero value reports nothing. Only the first
// report is sent.
type Reporter struct{ pipe *os.File }

// NewReporter returns a reporter. It reports nothing if no command waits, as when a user started the daemon.
func NewReporter() *Reporter {
	var st unix.Stat_t
	if err := unix.Fstat(reportFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return &Reporter{}
	}
	unix.CloseOnExec(reportFD)
	return &Reporter{os.NewFile(reportFD, "report")}
}

// Descriptors returns the file descriptors that a program needs which this process executes, to report in its place.
func (r *Reporter) Descriptors() []int {
	if r.pipe == nil {
		return nil
	}
	return []int{reportFD}
}

// Ready reports that the daemon is ready.
func (r *Reporter) Ready() { r.send(report{}) }

// Failed reports why the daemon exits, with hints for the user. It does nothing after [Reporter.Ready].
func (r *Reporter) Failed(message string, hints []string, status int) {
	r.send(report{Error: message, Hints: hints, Status: status})
}

func (r *Reporter) send(message report) {
	if r.pipe == nil {
		return
	}
	_ = json.NewEncoder(r.pipe).Encode(message) // fails if the command has exited
	_ = r.pipe.Close()
	r.pipe = nil
}
