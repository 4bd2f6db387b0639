/*
 * Prints the tables that c_library.rs holds the crate to:
 *   cc -o c_library c_library.c
 *   ./c_library printf > printf.tsv    bits, %g, %13.8g
 *   ./c_library strtod > strtod.tsv    text, bits or "refused"
 * Both are correctly rounded in FreeBSD's and in the GNU C library.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t
draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state);
}

static uint64_t
bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof bits);
	return (bits);
}

static double
number_of(uint64_t bits)
{
	double number;

	memcpy(&number, &bits, sizeof number);
	return (number);
}

static void
print(double number)
{
	/* Not-a-number and infinity differ between libraries. */
	if (number - number == 0)
		printf("%016" PRIx64 "\t%g\t%13.8g\n", bits_of(number), number, number);
}

static void
print_all(void)
{
	static const double numbers[] = { 0.0, -0.0, 1, -1, 0.5, 0.0001, 0.00001, 99999.95,
	    999999.4, 999999.5, 999999.6, 99999999.4, 99999999.5, 100000000.5, 12345678.5,
	    12345679.5, 5489556.5, 4919794.5, 0.000099999951, 0.00009999995, 1e15, 1e16, 1e21,
	    1e22, 1e23, 123456789012, 0.1, 0.3, 2.5, 3.5, 1e100, 1e-100, 5e-324, 2.2250738585072014e-308,
	    1.7976931348623157e308 };
	unsigned i;

	for (i = 0; i < sizeof numbers / sizeof *numbers; i++)
		print(numbers[i]);
	for (i = 0; i < 200; i++)
		print(number_of(draw()));
	/* Figures of the size of packet rates, halves (ties at eight digits) among them. */
	for (i = 0; i < 150; i++)
		print((double)(draw() % 300000000) / 2);
	for (i = 0; i < 150; i++)
		print(((double)(draw() % 2000001) - 1000000) / 12800);
}

static void
read_back(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end != '\0')
		printf("%s\trefused\n", text);
	else
		printf("%s\t%016" PRIx64 "\n", text, bits_of(number));
}

static void
read_all(void)
{
	static const char *const texts[] = { "0", "-0", "+0", "1.", ".5", ".", "+.5e1", "1e", "1e+", "1e5x", "1,5",
	    "0x", "0x.", "0x.8", "0x1.8p3", "0x1p", "0x1p-1074", "0x1p-1075", "0x1.8p-1075", "0x1.fffffffffffff8p1023",
	    "0X1P+4", "-0xA.8", "0x1.00000000000008p0", "0x1.000000000000080001p0", "inf", "-Infinity", "infinit",
	    "1e308", "1e309", "-1e309", "4.9e-324", "2.4e-324", "2.5e-324", "9007199254740992", "9007199254740993",
	    "900719925474099.3", "9007199254740.993", "0.9007199254740993", "1152921504606846977", "9999999999999999999",
	    "123456789012345678901234567890", "2.2250738585072011e-308", "2.2250738585072014e-308",
	    "1.7976931348623158e308", "1.7976931348623159e308", "8.5", " 8.5", "8.5 ", "1_0", "--1", "+-1", "e1" };
	char text[64];
	unsigned i;

	for (i = 0; i < sizeof texts / sizeof *texts; i++)
		read_back(texts[i]);
	for (i = 0; i < 150; i++) {
		snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64, draw() % 100000000, draw() % 10000000000u);
		read_back(text);
	}
	for (i = 0; i < 150; i++) {
		snprintf(text, sizeof text, "0x%" PRIx64 ".%" PRIx64 "p%d", draw() >> draw() % 64, draw(),
		    (int)(draw() % 2300) - 1150);
		read_back(text);
	}
	for (i = 0; i < 150; i++) {
		snprintf(text, sizeof text, "%" PRIu64 "e%d", draw(), (int)(draw() % 660) - 340);
		read_back(text);
	}
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "printf") == 0)
		print_all();
	else if (argc == 2 && strcmp(argv[1], "strtod") == 0)
		read_all();
	else
		return (2);
	return (0);
}
