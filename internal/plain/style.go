package plain

import "io"

// Style is how david shows words of its own on a terminal: the parameters of "select graphic rendition".
type Style string

// The styles. Each is bold as well, so that colour alone never tells.
const (
	Strong Style = "1"
	Good   Style = "1;32"
	Bad    Style = "1;31"
)

// Colour has Styled show styles.
func (w *Writer) Colour() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.colour = true
}

// Styled writes a text, made visible as any other, in a style where styles are shown. Where a secret may begin
// before it or at its end it is written without one.
func (w *Writer) Styled(s Style, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := []byte(text)
	if !w.colour || len(p) == 0 || len(w.held) > 0 || w.begun(p) > 0 || incomplete(p) > 0 {
		return w.write(p)
	}
	shown := append([]byte("\x1b["+string(s)+"m"), visible(nil, w.hide(p), "\n\t")...)
	_, err := w.out.Write(append(shown, "\x1b[0m"...))
	return err
}

// Styled writes a text in a style where out shows styles, and else as it is.
func Styled(out io.Writer, s Style, text string) error {
	if w, ok := out.(*Writer); ok {
		return w.Styled(s, text)
	}
	_, err := io.WriteString(out, text)
	return err
}
