package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard lets in who has the token, by a name that nobody else can have pointed here.
type guard struct {
	host                   string // a name that is let in besides addresses and localhost
	token, session, formOf string // in the URL; in the cookie; in forms
}

func newGuard(host string) guard {
	return guard{host: host, token: rand.Text(), session: rand.Text(), formOf: rand.Text()}
}

// cookieName begins the name of the cookie; browsers send those of one host to all its ports.
const cookieName = "david-"

// policy lets a page load and ask nothing but what david serves itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Token is what the first URL has to carry.
func (g guard) Token() string { return g.token }

// guarded lets requests through that may be answered.
func (s *Site) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if !s.hostOf(r) {
			http.Error(w, "david serve answers to an address or to localhost only", http.StatusMisdirectedRequest)
			return
		}
		if r.URL.Path == "/" && same(r.URL.Query().Get("token"), s.token) {
			s.welcome(w, r)
			return
		}
		if c, err := r.Cookie(s.cookie(r)); err != nil || !same(c.Value, s.session) {
			s.refuse(w, http.StatusForbidden, "Who is asking?", "Open the whole address that david serve printed, with its token.")
			return
		}
		if r.Method != http.MethodGet && !s.ownForm(w, r) {
			s.refuse(w, http.StatusForbidden, "Not from here", "That request did not come from a form of this page. Nothing was done.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// harden sets what every answer carries.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// hostOf tells whether a request was sent to an address, to localhost, or to the name that was asked for. A name of
// somebody else's that leads here (DNS rebinding) is none of them.
func (s *Site) hostOf(r *http.Request) bool {
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = r.Host
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return name == "localhost" || s.host != "" && strings.EqualFold(name, s.host)
}

// welcome gives the cookie for the token, and takes the token out of the address.
func (s *Site) welcome(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: s.cookie(r), Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// cookie names this david's.
func (s *Site) cookie(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return cookieName + port
}

// mostForm bounds what a form may send, in bytes.
const mostForm = 4 << 10

// ownForm tells whether a request comes from a form of these pages: by what is hidden in it, and by the browser's word.
func (s *Site) ownForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	return same(r.PostFormValue("form"), s.formOf)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
