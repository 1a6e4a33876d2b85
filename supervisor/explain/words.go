package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/api"
)

// code is an exit code, with what it stands for between two texts.
func code(x *api.ContainerExit, before, behind string) string {
	if x == nil {
		return "code unknown"
	}
	text, meaning := fmt.Sprintf("code %d", x.Code), codes[x.Code]
	switch {
	case x.Reason == api.ReasonOOMKilled:
		meaning = string(x.Reason)
	case x.Signal != "":
		meaning = x.Signal
	}
	if meaning == "" {
		return text
	}
	return text + before + meaning + behind
}

// codes are the meanings of the exit codes that shells and container runtimes share.
var codes = map[int]string{126: "command cannot be executed", 127: "command not found"}

// signals are the usual senders of signals that end containers.
var signals = map[string]string{
	"SIGKILL": "killed", "SIGTERM": "terminated on request", "SIGSEGV": "invalid memory access", "SIGABRT": "aborted by the program itself",
	"SIGBUS": "invalid memory access", "SIGFPE": "arithmetic error", "SIGILL": "invalid instruction", "SIGINT": "interrupted",
	"SIGPIPE": "wrote to a closed pipe", "SIGHUP": "hangup",
	"SIGSYS": "killed by the seccomp profile, which may not allow 32-bit programs",
}

// meaning explains a well-known exit code; empty for a code that is the program's own.
func meaning(x *api.ContainerExit) string {
	switch {
	case x.Reason == api.ReasonOOMKilled && x.Signal == "SIGKILL":
		return "SIGKILL: killed by the kernel, out of memory"
	case x.GraceExceeded:
		return "SIGKILL: killed after the grace period"
	case x.Signal != "" && signals[x.Signal] != "":
		return x.Signal + ": " + signals[x.Signal]
	case x.Signal != "":
		return x.Signal
	}
	return codes[x.Code]
}

// after is how long a run took; empty if that is not known or not positive: the wall clock may have been set.
func after(x *api.ContainerExit) string {
	if x == nil {
		return ""
	}
	if took := x.FinishedAt.Sub(x.StartedAt); !x.StartedAt.IsZero() && took >= 0 {
		return " after " + span(took, 100*time.Millisecond)
	}
	return ""
}

// owned is a part of a container as the subject of a clause.
func owned(part, subject string) string {
	if subject == "it" {
		return "its " + part
	}
	return "the " + part + " of " + subject
}

func by(client string) string {
	if client == "" {
		return ""
	}
	return " by " + client
}

func requestedBy(by string) string {
	if by == "" {
		return ""
	}
	return " (requested by " + by + ")"
}

func because(message string) string {
	if message = oneLine(message); message == "" {
		return ""
	}
	return ": " + message
}

func inBrackets(text string) string {
	if text = oneLine(text); text == "" {
		return ""
	}
	return " (" + text + ")"
}

func repeated(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" %d times", n)
}

func pending(c *api.Cause) string {
	output := oneLine(c.Output)
	switch {
	case c.Failures > 1:
		return fmt.Sprintf(" (%d failures%s)", c.Failures, because(output))
	case output != "":
		return " (" + output + ")"
	}
	return ""
}

// often is how often something happened.
func often(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// sentence ends a text with one full stop.
func sentence(text string) string { return strings.TrimRight(text, ". ") + "." }

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// maxText is how much of a text by a program or the engine is part of a sentence, in bytes.
const maxText = 320

// oneLine is a text as part of a sentence. The middle of a long one is left out: an error has its cause at the end.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText/2], "") + " … " + strings.ToValidUTF8(s[len(s)-maxText/2:], "")
	}
	return strings.TrimRight(s, ".")
}

// span is a duration in the precision that a person needs.
func span(d, precision time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d >= time.Minute:
		precision = time.Second
	case d < time.Second && precision < time.Second:
		precision = time.Millisecond
	}
	return d.Round(precision).String()
}

// quantity is a number of bytes as pod files have it, or else in Mi.
func quantity(bytes int64) string {
	const mi = 1 << 20
	if bytes > mi && bytes%mi != 0 {
		return fmt.Sprintf("%.1fMi", float64(bytes)/mi)
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// Size is a number of bytes as text, rounded: bytes below 1Ki, whole Ki below 1Mi, and one decimal in Mi and Gi.
func Size(bytes int64) string {
	const ki, gi = 1 << 10, 1 << 30
	if bytes < ki {
		return fmt.Sprintf("%dB", bytes)
	}
	if bytes >= gi && bytes%gi != 0 {
		return fmt.Sprintf("%.1fGi", float64(bytes)/gi)
	}
	return quantity(bytes - bytes%ki)
}

// clock is a time in the time zone of now, without the date if that is today.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// further returns a further sentence about the pod; empty: there is no such text.
func further(begin, text string) string {
	if text == "" {
		return ""
	}
	return " " + begin + sentence(text)
}
