package view

import (
	"io"
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
	// minCell is the minimum width of a cell that is shortened.
	minCell = 8
	// ellipsis is the end of a cell that is shortened.
	ellipsis = "…"

	red, reset = "\x1b[31m", "\x1b[0m"
)

// Table prints rows with aligned columns. All rows have the same number of cells, and the first one is the header. On a terminal, the widest
// columns but the first are shortened until the rows fit, and problems are red.
func (s Screen) Table(rows [][]string) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = escaped(row)
	}
	widths := columnWidths(cells)
	if s.Width > 0 && len(cells) > 0 {
		fit(widths, columnWidths(cells[:1]), s.Width)
	}
	var b strings.Builder
	for _, row := range cells {
		for j, cell := range row {
			text := shorten(cell, widths[j])
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

// fit reduces the widest columns but the first until a row has at most this number of columns, but no column below the width of its header.
func fit(widths, headers []int, limit int) {
	total := gap * (len(widths) - 1)
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
		if widest == 0 {
			return
		}
		widths[widest]--
	}
}

// shorten returns the start of a cell.
func shorten(cell string, width int) string {
	if utf8.RuneCountInString(cell) <= width {
		return cell
	}
	return string([]rune(cell)[:width-1]) + ellipsis
}

// problems are the words of cells that report a problem. A cell can have a detail in parentheses after it, and "Init:" before it.
var problems = map[string]bool{
	"Error": true, "Failed": true, "CrashLoopBackOff": true, "ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true,
	"ErrImageNeverPull": true, "CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true, "StartError": true,
	"PostStartHookError": true, "OOMKilled": true, "DeadlineExceeded": true, "Evicted": true, "ContainerCannotRun": true, "Unknown": true,
	"InvalidFile": true, "Rejected": true, "NotReady": true, "StateNotDurable": true, "ContainerStatusUnknown": true,
}

// isProblem reports whether a cell reports a problem.
func isProblem(cell string) bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(cell, "Init:"), " ")
	return problems[word] || strings.HasPrefix(word, "ExitCode:") || strings.HasPrefix(word, "Signal:")
}
