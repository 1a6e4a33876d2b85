package timeline

import "slices"

// pattern is a filling that is not told by its colour alone. The classes of its parts have their colours in [Style].
type pattern struct{ class, content string }

var patterns = []pattern{
	{string(Failed), `width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect class="f-failed" width="7" height="7"/><rect class="f-line" width="2" height="7"/>`},
	{string(OOMKilled), `width="6" height="6" patternUnits="userSpaceOnUse">` +
		`<rect class="f-oom" width="6" height="6"/><circle class="f-line" cx="3" cy="3" r="1.5"/>`},
	{string(Stopped), `width="6" height="5" patternUnits="userSpaceOnUse">` +
		`<rect class="f-stopped" width="6" height="5"/><rect class="f-line" width="6" height="1.2"/>`},
	{string(Lost), `width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect class="f-lost" width="6" height="6"/><path class="f-line" d="M0 0h1v6h-1zM0 0h6v1h-6z"/>`},
	{stopping, `width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">` +
		`<rect class="f-dark" width="2.4" height="5"/>`},
	{string(BackOff), `width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect class="f-back" width="6" height="6"/><rect class="f-backoff" width="2" height="6"/>`},
	{string(Pull), `width="5" height="5" patternUnits="userSpaceOnUse">` +
		`<rect class="f-pullback" width="5" height="5"/><circle class="f-pull" cx="2.5" cy="2.5" r="1.3"/>`},
	{off, `width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">` +
		`<rect class="f-off" width="8" height="8"/><rect class="f-offline" width="1" height="8"/>`},
}

func isPattern(class string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.class == class })
}

// Style is the style sheet of a picture. The colours of texts have a contrast of at least 4.5 with what is behind them.
const Style = `
.tl{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.tl text{fill:#1f2328}
.tl .bg{fill:#fff}
.tl .name{font-size:15px;font-weight:600}
.tl .note,.tl .tick,.tl .few{fill:#57606a;font-size:11px}
.tl .few{font-size:9px}
.tl .label{font-size:11px}
.tl .inside{fill:#fff;font-size:11px;paint-order:stroke;stroke:#000;stroke-opacity:.55;stroke-width:2.5px}
.tl .letter{fill:#fff;font-size:9px;font-weight:700}
.tl .stripe{fill:#f6f8fa}
.tl .grid{stroke:#d8dee4;fill:none}
.tl .axis{stroke:#57606a;fill:none}
.tl .track{fill:#eaeef2}
.tl .ready{fill:#2da44e}
.tl .running{fill:#0969da}
.tl .succeeded{fill:#1a7f37}
.tl .probe,.tl .error{fill:#cf222e}
.tl .request{fill:#57606a}
.tl .f-failed,.tl .n-failed{fill:#cf222e}
.tl .f-oom,.tl .n-oom{fill:#8250df}
.tl .f-stopped,.tl .n-stopped{fill:#6e7781}
.tl .f-lost,.tl .n-lost{fill:#9aa4ae}
.tl .f-line{fill:#fff;fill-opacity:.45}
.tl .f-dark,.tl .n-stopping{fill:#000;fill-opacity:.35}
.tl .f-back{fill:#fff1d6}
.tl .f-backoff{fill:#d4851c}
.tl .f-pullback{fill:#d3f1f7}
.tl .f-pull{fill:#0a7ea4}
.tl .n-backoff{fill:#f0c78a}
.tl .n-pull{fill:#7cc4d8}
.tl .f-off,.tl .n-off{fill:#8c959f;fill-opacity:.35}
.tl .f-offline{fill:#57606a}
.tl .mark path{stroke:#57606a;stroke-dasharray:4 3;fill:none}
.tl .mark circle{fill:#57606a}
.tl .m-boot path,.tl .m-host path{stroke:#24292f;stroke-dasharray:none}
.tl .m-boot circle,.tl .m-host circle{fill:#24292f}
.tl .m-update path{stroke:#0969da}
.tl .m-update circle{fill:#0969da}
.tl .m-trouble path{stroke:#cf222e}
.tl .m-trouble circle{fill:#cf222e}
@media (prefers-color-scheme:dark){
.tl text{fill:#e6edf3}
.tl .bg{fill:#0d1117}
.tl .note,.tl .tick,.tl .few{fill:#9aa4ae}
.tl .inside,.tl .letter{fill:#fff}
.tl .stripe{fill:#161b22}
.tl .grid{stroke:#30363d}
.tl .axis{stroke:#9aa4ae}
.tl .track{fill:#30363d}
.tl .ready{fill:#3fb950}
.tl .running{fill:#2f81f7}
.tl .succeeded{fill:#2ea043}
.tl .probe,.tl .error{fill:#ff7b72}
.tl .request{fill:#c9d1d9}
.tl .f-failed,.tl .n-failed{fill:#da3633}
.tl .f-oom,.tl .n-oom{fill:#a371f7}
.tl .f-back{fill:#3a2a10}
.tl .f-backoff{fill:#d29922}
.tl .f-pullback{fill:#0d2d3a}
.tl .f-pull{fill:#39b5d8}
.tl .n-backoff{fill:#7a5415}
.tl .n-pull{fill:#1d6a82}
.tl .f-off,.tl .n-off{fill:#6e7681;fill-opacity:.4}
.tl .f-offline{fill:#9aa4ae}
.tl .mark path{stroke:#9aa4ae}
.tl .mark circle{fill:#6e7681}
.tl .m-boot path,.tl .m-host path{stroke:#f0f6fc}
.tl .m-boot circle,.tl .m-host circle{fill:#484f58}
.tl .m-update path{stroke:#58a6ff}
.tl .m-update circle{fill:#1f6feb}
.tl .m-trouble path{stroke:#ff7b72}
.tl .m-trouble circle{fill:#da3633}
}
`
