package ondemand

import (
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"
)

// reportFD is where a daemon that was started on demand tells how its start went.
const reportFD = 3

// report is what it tells, once.
type report struct {
	Error  string   `json:"error,omitempty"` // empty: it is ready
	Hints  []string `json:"hints,omitempty"`
	Status int      `json:"status,omitempty"`
}

// Reporter is the daemon's end: it tells the command that started the daemon how that went.
type Reporter struct{ pipe *os.File }

// NewReporter returns a reporter. Where nobody waits, as when a person starts the daemon, it tells nobody.
func NewReporter() *Reporter {
	var st unix.Stat_t
	if err := unix.Fstat(reportFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return &Reporter{}
	}
	unix.CloseOnExec(reportFD)
	return &Reporter{os.NewFile(reportFD, "report")}
}

// Ready tells that the daemon answers.
func (r *Reporter) Ready() { r.tell(report{}) }

// Failed tells why the daemon ends, and what a person can do. It tells nothing after [Reporter.Ready].
func (r *Reporter) Failed(message string, hints []string, status int) {
	r.tell(report{Error: message, Hints: hints, Status: status})
}

func (r *Reporter) tell(what report) {
	if r.pipe == nil {
		return
	}
	// Whoever waited may be gone; then nobody is interested.
	_ = json.NewEncoder(r.pipe).Encode(what)
	_ = r.pipe.Close()
	r.pipe = nil
}
