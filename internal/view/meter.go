package view

import (
	"fmt"
	"strings"
	"time"
)

const (
	// meterWindow is the time over which a speed is measured. The speed is not known in the first second.
	meterWindow = 5 * time.Second
	// meterInterval is the least time between two samples.
	meterInterval = 100 * time.Millisecond
	// maxLeft is the longest time left that is shown.
	maxLeft = 99 * 24 * time.Hour
	// barWidth is the number of columns of a bar, without its brackets.
	barWidth = 20
)

// meter measures the speed of a transfer. The zero value is usable.
type meter struct{ samples []sample }

type sample struct {
	at   time.Time
	done int64 // bytes
}

// rate adds how much was transferred until now, and returns the speed in bytes per second; 0: it is not known yet.
func (m *meter) rate(now time.Time, done int64) float64 {
	if n := len(m.samples); n > 0 && done < m.samples[n-1].done { // another transfer
		m.samples = nil
	}
	if n := len(m.samples); n == 0 || now.Sub(m.samples[n-1].at) >= meterInterval {
		m.samples = append(m.samples, sample{now, done})
	}
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= meterWindow {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if elapsed := now.Sub(first.at); elapsed >= time.Second {
		return float64(done-first.done) / elapsed.Seconds()
	}
	return 0
}

// progressLine is a transfer as a line of a terminal.
type progressLine struct {
	what string
	bar  string // empty: the total is not known
	rest string // bytes, speed and time left; empty: nothing is known
}

// progressOf returns the line of a transfer. A total of 0 is not known, and neither is a rate of 0.
func progressOf(what string, done, total int64, rate float64) progressLine {
	p := progressLine{what: what}
	switch {
	case total > 0:
		done = min(done, total)
		full := int(done * barWidth / total)
		p.bar = "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
		p.rest = fmt.Sprintf("%s of %s (%d%%)", Size(done), Size(total), done*100/total)
	case done > 0:
		p.rest = Size(done)
	}
	if rate >= 1 {
		p.rest += fmt.Sprintf(", %s/s", Size(int64(rate)))
		if left := float64(total-done) / rate; total > done && left < maxLeft.Seconds() {
			p.rest += fmt.Sprintf(", %s left", Age(time.Duration(left*float64(time.Second))))
		}
	}
	return p
}

// text returns the line without the bar.
func (p progressLine) text() string {
	if p.rest == "" {
		return p.what
	}
	return p.what + ": " + p.rest
}

// fit returns the line with more behind it, with the bar if it has at most width columns then.
func (p progressLine) fit(more string, width int) string {
	if p.bar != "" {
		if line := p.what + ": " + p.bar + " " + p.rest + more; len([]rune(line)) <= width {
			return line
		}
	}
	return p.text() + more
}
