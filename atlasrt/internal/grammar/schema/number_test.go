package schema

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// numberTexts are numbers as Python writes them, and with zeros behind.
func numberTexts() (texts []string) {
	random := rand.New(rand.NewPCG(1, 2))
	texts = []string{"0", "-0", "0.0", "-0.0", "1", "-1", "9", "10", "99", "100", "101", "0.1", "0.10", "0.09", "0.25", "2.5", "2.50", "-2.5", "12.25", "1e-05",
		"9.99e-05", "1e+16", "1.5e+16", "-1e+16", "1e+300", "-1.25e-07", "12345678901234567890", "0.0001", "0.00001", "123456.789"}
	for range 400 {
		n := fmt.Sprint(random.IntN(4000) - 2000)
		switch random.IntN(3) {
		case 0:
			n += fmt.Sprintf(".%0*d", 1+random.IntN(3), random.IntN(10))
		case 1:
			n += fmt.Sprintf(".%d", random.IntN(1000))
		}
		texts = append(texts, n)
	}
	return texts
}

func rational(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatal(text)
	}
	return r
}

// Bounds of all kinds take exactly the numbers that arithmetic takes.
func TestBounds(t *testing.T) {
	texts := numberTexts()
	for _, bound := range []string{"0", "1", "-1", "5", "10", "99", "100", "-100", "0.5", "-0.5", "2.25", "-2.25", "100.01", "999", "1000", "-1999.5", "1e-05", "1e-06", "1e16", "-1e16", "1.5e16", "0.1", "12345"} {
		b := rational(t, bound)
		for keyword, holds := range map[string]func(order int) bool{
			"minimum": func(o int) bool { return o >= 0 }, "maximum": func(o int) bool { return o <= 0 },
			"exclusiveMinimum": func(o int) bool { return o > 0 }, "exclusiveMaximum": func(o int) bool { return o < 0 },
		} {
			var valid, invalid []string
			for _, text := range texts {
				if holds(rational(t, text).Cmp(b)) {
					valid = append(valid, text)
				} else {
					invalid = append(invalid, text)
				}
			}
			schema := fmt.Sprintf(`{"type":"number",%q:%s}`, keyword, bound)
			check(t, schema, Options{}, valid, invalid)
			check(t, `{"type":"number","not":`+schema+`}`, Options{}, invalid, valid)
		}
	}
}

// Steps take exactly the numbers that arithmetic takes, unless those have an exponent.
func TestMultiples(t *testing.T) {
	for _, step := range []string{"1", "2", "3", "5", "7", "10", "12", "25", "100", "0.1", "0.01", "0.5", "0.25", "2.5", "1.5", "0.3", "0.07", "1e2", "30"} {
		by := rational(t, step)
		var valid, invalid []string
		for _, text := range numberTexts() {
			switch r := rational(t, text); {
			case len(text) > 4 && (text[len(text)-4] == 'e' || text[len(text)-3] == 'e' || text[len(text)-5] == 'e'):
			case new(big.Rat).Quo(r, by).IsInt():
				valid = append(valid, text)
			default:
				invalid = append(invalid, text)
			}
		}
		schema := fmt.Sprintf(`{"type":"number","multipleOf":%s}`, step)
		integer := step == "1" || step == "2" || step == "3" || step == "5" || step == "7" || step == "10" || step == "12" || step == "25" || step == "100" || step == "1e2" || step == "30"
		if integer { // at most one zero behind the point
			check(t, schema, Options{}, nil, invalid)
			check(t, schema, Options{}, short(valid), nil)
		} else {
			check(t, schema, Options{}, valid, invalid)
		}
		check(t, `{"type":"number","not":`+schema+`}`, Options{}, invalid, valid)
	}
	check(t, `{"multipleOf":3,"minimum":10,"maximum":20,"not":{"enum":[15]}}`, Options{}, []string{"12", "18", "18.0"}, []string{"9", "15", "15.0", "21", "16"})
}

// short is the numbers without several zeros behind the point.
func short(texts []string) (kept []string) {
	for _, text := range texts {
		if n := len(text); n < 3 || text[n-1] != '0' || text[n-2] != '0' && text[n-2] != '.' || text[n-2] == '.' {
			kept = append(kept, text)
		}
	}
	return kept
}

func TestIntegers(t *testing.T) {
	for _, draft := range []string{"draft-04/schema#", "draft/2020-12/schema"} {
		check(t, `{"$schema":"http://json-schema.org/`+draft+`","type":"integer"}`, Options{}, []string{"0", "7", "-12", "123456789012345678901234567890"},
			[]string{"-0", "-0.0", "1.0", "1.5", "01", "1.", "+1", "1e2", "1.00", "", "-"})
	}
	check(t, `{"type":["integer","null"]}`, Options{}, []string{"10", "null"}, []string{"10.0", "-0"})
	check(t, `{"anyOf":[{"type":"integer"},{"type":"string"}],"multipleOf":5}`, Options{}, []string{"10", "-5", "0", `""`}, []string{"10.0", "-0", "4"})
	check(t, `{"type":"integer","enum":[0,1.0,1e2,2.5]}`, Options{}, []string{"0", "1", "100"}, []string{"-0", "1.0", "0.0", "100.0", "2.5"})
	check(t, `{"multipleOf":1}`, Options{}, []string{"10", "10.0"}, []string{"10.5"})
	check(t, `{"type":"number"}`, Options{}, []string{"0", "1.50", "1e5", "1E-5", "-2.5e+10"}, []string{"01", ".5", "1.", "1e", "NaN", "Infinity"})
	check(t, `{"type":"integer","minimum":-3,"maximum":12}`, Options{}, []string{"-3", "0", "12"}, []string{"-4", "13", "1.5", "12.0", "-0"})
	check(t, `{"enum":[1,2.5,1e2,-0.001]}`, Options{}, []string{"1", "1.0", "2.5", "100", "100.0", "-0.001"}, []string{"2", "1.5", "1.00", "10", "2.50"})
	check(t, `{"type":"integer","not":{"type":"number","minimum":3}}`, Options{}, []string{"2", "-5"}, []string{"3", "3.0", "10"})
	check(t, `{"type":"number","not":{"type":"integer"}}`, Options{}, []string{"2.5", "-0.1"}, []string{"3", "3.0", "1e+16"})
}
