package api

// OutputRuns selects runs of a container. The newest run is followed by all later ones if the request follows. As in kubectl, the previous
// run is the one in lastState. For a container in back-off that is the newest run.
type OutputRuns string

// The selections of runs.
const (
	AllRuns     OutputRuns = ""
	NewestRun   OutputRuns = "newest"
	PreviousRun OutputRuns = "previous"
)
