import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.charset.StandardCharsets;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Locale;
import java.util.Random;
import java.util.TimeZone;

/** Prints expressions and what Java makes of the same calls, separated by a tab. */
class Golden {
    static void row(String expression, long value) {
        row(expression, Long.toString(value));
    }

    static void row(String expression, float value) {
        row(expression, Float.toString(value));
    }

    static void row(String expression, double value) {
        row(expression, text(value));
    }

    /** A number in its shortest digits, of which Double.toString before Java 19 may print more. */
    static String text(double x) {
        if (x == 0 || Double.isNaN(x) || Double.isInfinite(x)) {
            return Double.toString(x);
        }
        for (int digits = 1; ; digits++) {
            BigDecimal d = new BigDecimal(x).round(new MathContext(digits));
            if (d.doubleValue() != x) {
                continue;
            }
            double size = Math.abs(x);
            if (size >= 1e-3 && size < 1e7) {
                return d.scale() > 0 ? d.toPlainString() : d.setScale(1).toPlainString();
            }
            d = d.stripTrailingZeros();
            int exponent = d.precision() - d.scale() - 1;
            d = d.movePointLeft(exponent);
            return (d.scale() > 0 ? d.toPlainString() : d.setScale(1).toPlainString()) + "E" + exponent;
        }
    }

    static void row(String expression, Object value) {
        System.out.print(expression + "\t" + value + "\n");
    }

    static String quoted(String s) {
        return "\"" + s.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    /** A number as the language writes it: a sign is an operator there. */
    static String literal(long x) {
        return x == Long.MIN_VALUE ? "(-9223372036854775807 - 1)" : x < 0 ? "(" + x + ")" : "" + x;
    }

    static String literal(double x) {
        return x < 0 ? "(" + x + ")" : "" + x;
    }

    public static void main(String[] args) {
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8));
        long[] integers = {0, 1, -1, 7, 255, -256, 4294967296L, Long.MAX_VALUE, Long.MIN_VALUE, 6148914691236517205L};
        for (long x : integers) {
            String n = literal(x);
            row(n, x);
            row("-" + n, -x);
            row("int64:reverse(" + n + ")", Long.reverse(x));
            row("int64:reverseBytes(" + n + ")", Long.reverseBytes(x));
            row("int64:xorShift(" + n + ")", xorShift(x));
            row("math:absInt32(" + n + ")", Math.abs((int) x));
            row("math:absInt64(" + n + ")", Math.abs(x));
            for (int r : new int[] {2, 10, 16, 36, 37}) {
                row("int64:toString(" + n + ", " + r + ")", Long.toString(x, r));
                row("int64:toUnsignedString(" + n + ", " + r + ")", Long.toUnsignedString(x, r));
            }
            for (int d : new int[] {0, 1, 13, 64, -5}) {
                row("int64:rotateLeft(" + n + ", " + d + ")", Long.rotateLeft(x, d));
                row("int64:rotateRight(" + n + ", " + d + ")", Long.rotateRight(x, d));
            }
            for (long y : integers) {
                String m = literal(y);
                row(n + " + " + m, x + y);
                row(n + " - " + m, x - y);
                row(n + " * " + m, x * y);
                row(n + " / " + m, (double) x / (double) y);
                if (y != 0) {
                    row(n + " % " + m, x % y);
                }
                row(n + " <= " + m, x <= y);
                row("int64:xor(" + n + ", " + m + ")", x ^ y);
                row("math:maxInt32(" + n + ", " + m + ")", Math.max((int) x, (int) y));
                row("math:minInt32(" + n + ", " + m + ")", Math.min((int) x, (int) y));
                row("math:maxInt64(" + n + ", " + m + ")", Math.max(x, y));
                row("math:minInt64(" + n + ", " + m + ")", Math.min(x, y));
            }
        }
        double[] reals = {0, 1, -1, 0.5, 2.75, -3.999, 100, 1234567.5, 12345678, 0.001, 0.00099, 1e21, 1.5e-10, 1e-300, 1.7976931348623157e308, Math.PI};
        for (double x : reals) {
            String n = literal(x);
            row(n, x);
            row("math:absFloat64(" + n + ")", Math.abs(x));
            row("math:absFloat32(" + n + ")", Math.abs((float) x));
            row("math:ceil(" + n + ")", Math.ceil(x));
            row("math:floor(" + n + ")", Math.floor(x));
            row("math:sqrt(" + n + ")", Math.sqrt(x));
            row("math:absInt64(" + n + ")", Math.abs((long) x));
            for (double y : new double[] {0, 0.5, -2, 1e10}) {
                String m = literal(y);
                row(n + " + " + m, x + y);
                row(n + " * " + m, x * y);
                row(n + " / " + m, x / y);
                row(n + " % " + m, x % y);
                row(n + " < " + m, x < y);
                row(n + " == " + m, x == y);
                row("math:maxFloat64(" + n + ", " + m + ")", Math.max(x, y));
                row("math:minFloat64(" + n + ", " + m + ")", Math.min(x, y));
                row("math:maxFloat32(" + n + ", " + m + ")", Math.max((float) x, (float) y));
                row("math:minFloat32(" + n + ", " + m + ")", Math.min((float) x, (float) y));
            }
        }
        // Java may return any of the two nearest numbers: eight digits are the same.
        for (double x : new double[] {0, 0.25, 0.75, 1, -0.5}) {
            String n = literal(x);
            near("math:acos(" + n + ")", Math.acos(x));
            near("math:asin(" + n + ")", Math.asin(x));
            near("math:atan(" + n + ")", Math.atan(x));
            near("math:cos(" + n + ")", Math.cos(x));
            near("math:sin(" + n + ")", Math.sin(x));
            near("math:tan(" + n + ")", Math.tan(x));
            near("math:exp(" + n + ")", Math.exp(x));
            near("math:log(" + n + " + 2)", Math.log(x + 2));
            near("math:log10(" + n + " + 2)", Math.log10(x + 2));
            near("math:pow(" + n + " + 2, 1.5)", Math.pow(x + 2, 1.5));
        }
        row("e", Math.E);
        row("pi", Math.PI);
        row("true ? 1 : 2", 1);
        row("1 > 2 ? \"a\" : \"b\"", "b");
        row("2 + 3 * 4 - 5 % 3", 2 + 3 * 4 - 5 % 3);
        row("(2 + 3) * -(4 - 6)", (2 + 3) * -(4 - 6));
        row("1 < 2 && 2 < 3 || 1 / 0 > 5", true);
        row("not (1 eq 2) and 3 ge 3", true);
        row("10 div 4", 2.5);
        row("10 mod 4", 2);
        row("string:join(\", \", \"a\", \"b\", \"c\")", String.join(", ", "a", "b", "c"));
        row("string:join(\"-\")", String.join("-"));
        row("date:from(0)", "Thu Jan 01 00:00:00 UTC 1970");

        String[] patterns = {
            "yyyy-MM-dd'T'HH:mm:ssZ", "yyyyMMdd.HHmmss.SSS", "yyyy-MM-dd'T'HH:mm:ss,SSS", "EEE, dd MMM yyyy HH:mm:ss zzz",
            "G y yy yyy yyyyyy", "M MM MMM MMMM MMMMM", "d dd ddd D DDD F", "E EEE EEEE u", "a h hh K KK k kk H HH m s S SS SSSS",
            "z zzzz Z X XX", "L LLL", "'it''s' ''yyyy''", "HH 'o''clock' - [mm]",
        };
        long day = 86400000L;
        long[] dates = {0, 1, -1, 951782400000L, 951868799999L, 1582934400000L, 1700000000123L, -day, 4102444800000L, -2208988800000L, 253402300799999L, 11 * 3600000L, 12 * 3600000L, 24 * 3600000L - 1};
        for (String p : patterns) {
            SimpleDateFormat f = new SimpleDateFormat(p, Locale.ENGLISH);
            f.setTimeZone(TimeZone.getTimeZone("UTC"));
            for (long d : dates) {
                row("date:format(" + quoted(p) + ").format(date:from(" + literal(d) + "))", f.format(new Date(d)));
            }
        }
        SimpleDateFormat random = new SimpleDateFormat("yyyy-MM-dd EEE D HH:mm:ss.SSS", Locale.ENGLISH);
        random.setTimeZone(TimeZone.getTimeZone("UTC"));
        Random r = new Random(1);
        for (int i = 0; i < 100; i++) {
            long d = (long) (r.nextDouble() * 2.6e14) - 12000000000000L; // from 1589 on
            row("date:format(\"yyyy-MM-dd EEE D HH:mm:ss.SSS\").format(date:from(" + literal(d) + "))", random.format(new Date(d)));
        }

        for (String f : new String[] {"%d", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%,d", "%,15d", "%x", "%X", "%08x", "%o", "%+,012d", "%1$d %1$x"}) {
            for (long x : new long[] {0, 42, -42, 1234567, Long.MIN_VALUE, Long.MAX_VALUE}) {
                row("string:format(" + quoted(f) + ", " + literal(x) + ")", String.format(Locale.ROOT, f, x));
            }
        }
        for (String f : new String[] {"%f", "%.2f", "%10.1f|", "%-10.1f|", "%010.2f", "%+.3f", "%,.2f", "%e", "%.3e", "%12.2e"}) {
            for (double x : new double[] {0, 1, -1, 3.14159, 1234567.891, 1e-5, -0.001, 1.0 / 0}) {
                String n = Double.isInfinite(x) ? "1 / 0" : literal(x);
                row("string:format(" + quoted(f) + ", " + n + ")", String.format(Locale.ROOT, f, x));
            }
        }
        for (String f : new String[] {"%.0f", "%.1f", "%.2f", "%,.1f", "%.20f", "%.0e", "%.1e", "%.20e"}) {
            for (double x : new double[] {0.125, 0.375, 1.005, 0.15, 0.5, 1.5, 2.5, 0.05, 0.005, 0.04, -0.04, -0.5, -2.5, 9.995, 9.5, 99.95, 999999.95, 1e22, 0.1, 4.35, 1.0 / 3, 123456789.125}) {
                row("string:format(" + quoted(f) + ", " + literal(x) + ")", String.format(Locale.ROOT, f, x));
            }
            for (int i = 0; i < 20; i++) {
                double x = (long) (r.nextDouble() * 1e5) / 1000.0; // half of a digit is frequent
                row("string:format(" + quoted(f) + ", " + literal(x) + ")", String.format(Locale.ROOT, f, x));
            }
        }
        for (String f : new String[] {"%s", "%8s|", "%-8s|", "%.2s", "%6.2s|", "%1$s-%1$s"}) {
            for (String s : new String[] {"", "a", "text", "\u00e4\u00f6\u00fc"}) {
                row("string:format(" + quoted(f) + ", " + quoted(s) + ")", String.format(Locale.ROOT, f, s));
            }
        }
        row("string:format(\"%b %s %s %s\", 1 < 2, 3, 2.5, false)", String.format(Locale.ROOT, "%b %s %s %s", 1 < 2, 3, 2.5, false));
        row("string:format(\"%c%c|%3c|%-3c|\", 65, 8364, 66, 67)", String.format(Locale.ROOT, "%c%c|%3c|%-3c|", 65, 8364, 66, 67));
        row("string:format(\"100%% of %2$s and %1$s\", \"a\", \"b\")", String.format(Locale.ROOT, "100%% of %2$s and %1$s", "a", "b"));
    }

    static void near(String expression, double value) {
        row("string:format(\"%.8e\", " + expression + ")", String.format(Locale.ROOT, "%.8e", value));
    }

    static long xorShift(long x) {
        x ^= x << 21;
        x ^= x >>> 35;
        x ^= x << 4;
        return x;
    }
}
