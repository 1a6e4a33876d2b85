package channel

// The values of [Status].Status.
const (
	StatusSuccess = "Success"
	StatusFailure = "Failure"
)

// Status is how a session ended. It has the fields of metav1.Status that sessions use. The package of metav1.Status would add 1 MB to the
// program, for codecs of other types.
type Status struct {
	Metadata struct{}       `json:"metadata"` // always present, as in Kubernetes
	Status   string         `json:"status,omitempty"`
	Message  string         `json:"message,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Details  *StatusDetails `json:"details,omitempty"`
	Code     int32          `json:"code,omitempty"` // of the HTTP status that the failure would have
}

// StatusDetails are the details of a failure.
type StatusDetails struct {
	Causes []StatusCause `json:"causes,omitempty"`
}

// StatusCause is one cause of a failure. Its type is its reason in JSON.
type StatusCause struct {
	Type    string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
