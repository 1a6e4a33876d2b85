// Package damage finds damaged files of the container engine and sets them aside.
//
// bbolt, which keeps the engine's records, panics or crashes on a damaged page, some of them only when it writes. Its own check therefore
// runs in a child process, which may crash: see [CheckDatabase]. A program that contains this package becomes that child if it is started
// as such, before its main function. The package knows nothing about containers and does not decide what follows from damage.
package damage

import "fmt"

// Reasons of damage, as they appear in the names of files that are set aside.
const (
	ReasonMissing = "missing"
	ReasonEmpty   = "empty"
	ReasonHeader  = "bad-header"
	ReasonSize    = "truncated"
	ReasonPage    = "bad-page"
	ReasonRecord  = "bad-record"
	ReasonContent = "bad-content"
)

// Error is the error of a check that found damage. Other errors mean that the file could not be checked.
type Error struct {
	File, Reason, Detail string
}

// Error names the file and the damage.
func (e *Error) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Detail) }
