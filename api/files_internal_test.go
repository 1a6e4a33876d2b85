package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTrailerIsBounded: the client rejects a response with a trailer of more than 4 KiB.
func TestTrailerIsBounded(t *testing.T) {
	long := strings.Repeat("\x01é", 4<<10)
	for name, end := range map[string]CopyEnd{
		"short":         {Warnings: []string{"a", "b"}},
		"many warnings": {Warnings: []string{long[:400], long[:400], long[:400], long[:400], long[:400]}},
		"long warning":  {Warnings: []string{long}},
		"long message":  {Error: &Error{Status: 409, Message: long, Hint: long}},
		"both":          {Error: &Error{Status: 409, Message: long}, Warnings: []string{long, long}},
	} {
		text, err := end.Trailer()
		if err != nil || len(text) > MaxTrailer {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		var got CopyEnd
		if err := json.Unmarshal(text, &got); err != nil || (got.Error == nil) != (end.Error == nil) ||
			(len(got.Warnings) == 0) != (len(end.Warnings) == 0) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if text, err := (CopyEnd{Warnings: []string{"a", "b"}}).Trailer(); err != nil || string(text) != `{"warnings":["a","b"]}` {
		t.Errorf("%s, %v", text, err)
	}
}
