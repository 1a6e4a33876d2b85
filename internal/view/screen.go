package view

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Screen prints tables.
type Screen struct {
	W      io.Writer
	Width  int  // columns of the terminal; 0: not a terminal, rows have any length
	Colour bool // marks what is wrong
}

const (
	// gap is the space between two columns.
	gap = 3
	// minCell is the minimum width of a cell that is shortened, and minName that of one in the first column.
	minCell = 8
	minName = 20
	// ellipsis stands for the end of a cell that is shortened, or the middle of a name.
	ellipsis = "…"

	red, reset = "\x1b[31m", "\x1b[0m"
)

// Table prints rows with aligned columns. All rows have the same number of cells, and the first one is the header. On a terminal, the
// widest columns are shortened until the rows fit, the first one last and least, and problems are red.
func (s Screen) Table(rows [][]string) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = escaped(row)
	}
	widths := columnWidths(cells)
	if s.Width > 0 && len(cells) > 0 {
		fit(widths, columnWidths(cells[:1]), s.Width-gap*(len(widths)-1))
	}
	var b strings.Builder
	for _, row := range cells {
		for j, cell := range row {
			text := shortenColumn(cell, j, widths[j])
			padding := widths[j] - utf8.RuneCountInString(text) + gap
			if s.Colour && isProblem(cell) {
				text = red + text + reset
			}
			b.WriteString(text)
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", padding))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(s.W, b.String())
	return err
}

// columnWidths returns the width of the widest cell of each column.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// fit reduces the widest columns but the first until all have at most this width together, but no column below the width of its header, and
// then the first one.
func fit(widths, headers []int, limit int) {
	total := 0
	for _, w := range widths {
		total += w
	}
	for ; total > limit; total-- {
		widest := 0
		for j := 1; j < len(widths); j++ {
			if widths[j] > max(minCell, headers[j]) && (widest == 0 || widths[j] > widths[widest]) {
				widest = j
			}
		}
		if widest == 0 && widths[0] <= max(minName, headers[0]) {
			return
		}
		widths[widest]--
	}
}

// shortenColumn returns a cell of a column with at most this width.
func shortenColumn(cell string, column, width int) string {
	if column == 0 {
		return shortenName(cell, width)
	}
	return shorten(cell, width)
}

// shorten returns the start of a cell.
func shorten(cell string, width int) string {
	if utf8.RuneCountInString(cell) <= width {
		return cell
	}
	return string([]rune(cell)[:width-1]) + ellipsis
}

// shortenName returns the start and the end of a name, which can be what distinguishes it: the tag of an image, the number of a pod.
func shortenName(name string, width int) string {
	all := []rune(name)
	if len(all) <= width {
		return name
	}
	end := (width - 1) / 2
	return string(all[:width-1-end]) + ellipsis + string(all[len(all)-end:])
}

// problems are the words of cells that report a problem. A cell can have a detail in parentheses after it, and "Init:" before it.
var problems = map[string]bool{
	"Error": true, "Failed": true, "CrashLoopBackOff": true, "ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true,
	"ErrImageNeverPull": true, "CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true,
	"StartError": true, "DeviceMissing": true, "DeviceForbidden": true,
	"PostStartHookError": true, "OOMKilled": true, "DeadlineExceeded": true, "BackoffLimitExceeded": true,
	"JobFailed": true, "Evicted": true, "ContainerCannotRun": true, "Unknown": true,
	"InvalidFile": true, "Rejected": true, "PodSecurity": true, "HostPathForbidden": true, "SysctlForbidden": true, "NodePorts": true,
	"OutOfcpu": true, "OutOfmemory": true, "OutOfephemeral-storage": true, "VolumeTerminating": true, "WaitForCycle": true,
	"UnexpectedAdmissionError": true, "AppArmor": true, "NotReady": true, "StateNotDurable": true, "ContainerStatusUnknown": true,
	"RunNotStarted": true, "RuntimeClassUnavailable": true,
}

// isProblem reports whether a cell reports a problem.
func isProblem(cell string) bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(cell, "Init:"), " ")
	return problems[word] || slices.ContainsFunc([]string{"ExitCode:", "Signal:", "OutOfhugepages-"}, func(start string) bool {
		return strings.HasPrefix(word, start)
	})
}
